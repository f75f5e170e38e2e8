#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What anyone can have on this GPU, measured with PyTorch, to stand beside Hallmark's figures of the
same run: device copy, fp16 products, 4-bit products, attention, and a stack of plain bf16 layers as a
CUDA graph. Shapes are those of the 27B geometry. Nothing of Hallmark runs here.

usage: peers.py [--json FILE]

Times are medians over replays of a CUDA graph between events; weights rotate over copies larger than
the L2. A row that this PyTorch cannot run says why instead of a figure.
"""
import argparse
import json
import statistics
import sys

import torch

HIDDEN, MLP, LAYERS = 5120, 17408, 64
QUERY, KV, CHANNELS, VALUES = 12288, 1024, 10240, 6144  # q with its gate; k, v; DeltaNet's qkv; z
HEADS, KV_HEADS, HEAD_DIM = 24, 4, 256
ROTATE_BYTES = 512 << 20
REPLAYS = 9
ROWS = (1, 8, 16, 17, 32, 64, 128, 512, 1024, 2048, 8192)


def time_graph(calls):
    """Median milliseconds of all `calls`, run once each, as one graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    times = []
    for _ in range(REPLAYS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def copy():
    source = torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    ms = time_graph([lambda: target.copy_(source)])
    return {"row": "copy", "ms": ms, "terabytes_per_second": 2 * source.numel() / ms / 1e9}


def products():
    for n, k in ((MLP, HIDDEN), (HIDDEN, MLP)):
        copies = max(2, ROTATE_BYTES // (2 * n * k))
        weights = [torch.randn(n, k, dtype=torch.float16, device="cuda") for _ in range(copies)]
        for rows in ROWS:
            x = torch.randn(rows, k, dtype=torch.float16, device="cuda")
            out = torch.empty(rows, n, dtype=torch.float16, device="cuda")
            ms = time_graph([lambda w=w: torch.mm(x, w.t(), out=out) for w in weights]) / copies
            yield {"row": "mm.fp16", "rows": rows, "k": k, "n": n, "ms": ms,
                   "teraflops": 2 * rows * n * k / ms / 1e9}


def four_bit_products():
    for n, k in ((MLP, HIDDEN), (HIDDEN, MLP)):
        copies = max(2, ROTATE_BYTES // (n * k // 2))
        packed = [torch._convert_weight_to_int4pack(
            torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device="cuda"), 8)
            for _ in range(copies)]
        scales = torch.ones(k // 64, n, 2, dtype=torch.bfloat16, device="cuda")
        for rows in (1, 8, 16, 32, 64):
            x = torch.randn(rows, k, dtype=torch.bfloat16, device="cuda")
            calls = [lambda w=w: torch._weight_int4pack_mm(x, w, 64, scales) for w in packed]
            yield {"row": "mm.int4", "rows": rows, "k": k, "n": n, "ms": time_graph(calls) / copies}


def attention():
    for keys in (4096, 32768, 196608):
        k, v = (torch.randn(1, KV_HEADS, keys, HEAD_DIM, dtype=torch.bfloat16, device="cuda")
                for _ in range(2))
        for rows in (1, 8):
            q = torch.randn(1, HEADS, rows, HEAD_DIM, dtype=torch.bfloat16, device="cuda")
            call = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
            ms = time_graph([call])
            yield {"row": "sdpa.bf16", "rows": rows, "keys": keys, "ms": ms,
                   "terabytes_per_second": 4 * keys * KV_HEADS * HEAD_DIM / ms / 1e9}


def stack():
    """The products of 64 layers in bf16, a quarter of them attention: about 50 GB of weights."""
    def weight(n, k):
        return torch.randn(n, k, dtype=torch.bfloat16, device="cuda").mul_(k ** -0.5)
    layers = []
    for i in range(LAYERS):
        mixer = ([weight(QUERY, HIDDEN), weight(KV, HIDDEN), weight(KV, HIDDEN)] if i % 4 == 3 else
                 [weight(CHANNELS, HIDDEN), weight(VALUES, HIDDEN)])
        layers.append((mixer, weight(HIDDEN, VALUES), weight(MLP, HIDDEN), weight(MLP, HIDDEN),
                       weight(HIDDEN, MLP)))

    def run(x):
        for mixer, out, gate, up, down in layers:
            mixed = [x @ w.t() for w in mixer][0][:, :VALUES]
            x = x + mixed @ out.t()
            x = x + (torch.nn.functional.silu(x @ gate.t()) * (x @ up.t())) @ down.t()
        return x
    for rows in (1, 8, 16, 64):
        x = torch.randn(rows, HIDDEN, dtype=torch.bfloat16, device="cuda")
        yield {"row": "stack.bf16", "rows": rows, "ms": time_graph([lambda: run(x)])}


def measure():
    for name, part in (("copy", lambda: [copy()]), ("mm.fp16", products), ("mm.int4", four_bit_products),
                       ("sdpa.bf16", attention), ("stack.bf16", stack)):
        try:
            for row in part():
                yield row
        except (RuntimeError, AttributeError, TypeError) as error:
            yield {"row": name, "not_measured": str(error).splitlines()[0]}
        torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("peers.py: this PyTorch sees no CUDA device, expected one")
    rows = []
    for row in measure():
        rows.append(row)
        print("  ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                        for key, value in row.items()), flush=True)
    if arguments.json:
        system = {"device": torch.cuda.get_device_name(), "torch": torch.__version__,
                  "cuda": torch.version.cuda}
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"system": system, "rows": rows}, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
