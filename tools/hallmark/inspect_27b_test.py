# SPDX-License-Identifier: Apache-2.0
"""hallmark inspect on a checkpoint of the 27B's true size, whose data is one hole: under one second
of processor time and 200 MB resident. HALLMARK names the program, HALLMARK_SOURCE the tree."""
import json
import os
import resource
import shutil
import struct
import subprocess
import tempfile
import unittest

import jsonschema

PROGRAM = os.environ["HALLMARK"]
SOURCE = os.environ["HALLMARK_SOURCE"]
MUL1 = struct.pack("<I", 0x83DCD12D)
HIDDEN, MLP, VOCAB, LAYERS, SHARDS = 5120, 17408, 248320, 64, 2
SIZES = {"I16": 2, "F16": 2, "BF16": 2, "I32": 4}

CONFIG = {
    "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
    "tie_word_embeddings": False, "eos_token_id": 248046,
    "quantization_config": {"quant_method": "exl3", "version": "1.4.2", "bits": 3.5, "head_bits": 6,
                            "codebook": "mul1"},
    "text_config": {
        "model_type": "qwen3_5_text", "hidden_size": HIDDEN, "intermediate_size": MLP,
        "num_hidden_layers": LAYERS, "num_attention_heads": 24, "num_key_value_heads": 4,
        "head_dim": 256, "linear_num_key_heads": 16, "linear_num_value_heads": 48,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
        "vocab_size": VOCAB, "rms_norm_eps": 1e-6, "max_position_embeddings": 262144,
        "hidden_act": "silu", "full_attention_interval": 4, "attn_output_gate": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000000,
                            "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10],
                            "mrope_interleaved": True}}}


def linear(name, inputs, outputs, bits):
    return [(name + ".trellis", "I16", [inputs // 16, outputs // 16, 16 * bits]),
            (name + ".suh", "F16", [inputs]), (name + ".svh", "F16", [outputs]),
            (name + ".mul1", "I32", [])]


def layer(index):
    at = f"model.language_model.layers.{index}."
    tensors = [(at + "input_layernorm.weight", "BF16", [HIDDEN]),
               (at + "post_attention_layernorm.weight", "BF16", [HIDDEN])]
    if index % 4 == 3:
        mixer = at + "self_attn."
        tensors += linear(mixer + "q_proj", HIDDEN, 12288, 4)
        tensors += linear(mixer + "k_proj", HIDDEN, 1024, 4) + linear(mixer + "v_proj", HIDDEN, 1024, 4)
        tensors += linear(mixer + "o_proj", 6144, HIDDEN, 4)
        tensors += [(mixer + "q_norm.weight", "BF16", [256]), (mixer + "k_norm.weight", "BF16", [256])]
    else:
        mixer = at + "linear_attn."
        tensors += linear(mixer + "in_proj_qkv", HIDDEN, 10240, 4)
        tensors += linear(mixer + "in_proj_z", HIDDEN, 6144, 4)
        tensors += linear(mixer + "out_proj", 6144, HIDDEN, 4)
        tensors += [(mixer + "in_proj_a.weight", "F16", [48, HIDDEN]),
                    (mixer + "in_proj_b.weight", "F16", [48, HIDDEN]),
                    (mixer + "conv1d.weight", "BF16", [10240, 1, 4]), (mixer + "A_log", "BF16", [48]),
                    (mixer + "dt_bias", "BF16", [48]), (mixer + "norm.weight", "BF16", [128])]
    for name, inputs, outputs in (("gate", HIDDEN, MLP), ("up", HIDDEN, MLP), ("down", MLP, HIDDEN)):
        tensors += linear(f"{at}mlp.{name}_proj", inputs, outputs, 3)
    return tensors


def write_shard(path, tensors):
    """The header, the markers' values, and a hole for everything else."""
    header, offset, markers = {}, 0, []
    for name, dtype, shape in tensors:
        size = SIZES[dtype]
        for extent in shape:
            size *= extent
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        if name.endswith(".mul1"):
            markers.append(offset)
        offset += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        begin = file.tell()
        file.truncate(begin + offset)
        for marker in markers:
            file.seek(begin + marker)
            file.write(MUL1)
    return offset


class Inspect27B(unittest.TestCase):
    def test_takes_no_time_and_no_memory(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        tensors = [("model.language_model.embed_tokens.weight", "BF16", [VOCAB, HIDDEN]),
                   ("model.language_model.norm.weight", "BF16", [HIDDEN])]
        for index in range(LAYERS):
            tensors += layer(index)
        tensors += linear("lm_head", HIDDEN, VOCAB, 6)
        used = len(tensors)
        tensors += linear("mtp.fc", 2 * HIDDEN, HIDDEN, 4) + [("mtp.norm.weight", "BF16", [HIDDEN])]
        tensors += [("model.visual.patch_embed.proj.weight", "BF16", [1152, 3, 2, 16, 16])]
        weight_map, total = {}, 0
        for shard in range(SHARDS):
            name = f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
            part = tensors[shard * len(tensors) // SHARDS:(shard + 1) * len(tensors) // SHARDS]
            total += write_shard(os.path.join(folder, name), part)
            weight_map.update({tensor[0]: name for tensor in part})
        for name, value in (("config.json", CONFIG),
                            ("model.safetensors.index.json",
                             {"metadata": {"total_size": total}, "weight_map": weight_map})):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(value, file)

        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([PROGRAM, "inspect", folder, "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        seconds = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
        print(f"inspect of {total / 2 ** 30:.2f} GiB: {seconds:.3f} s, {after.ru_maxrss / 1024:.1f} MB")
        self.assertLess(seconds, 1.0)
        self.assertLess(after.ru_maxrss, 200 * 1024)

        value = json.loads(done.stdout)
        with open(f"{SOURCE}/receipts/schemas/inspect.v1.schema.json", encoding="utf-8") as file:
            jsonschema.validate(value, json.load(file))
        self.assertEqual(value["totals"]["bytes"], total)
        self.assertEqual(value["totals"]["tensors"], len(tensors))
        self.assertEqual(value["totals"]["used_tensors"], used)
        self.assertEqual({part["prefix"]: part["tensors"] for part in value["unused"]},
                         {"mtp.": 5, "model.visual.": 1})
        self.assertEqual(value["config"]["attention_layers"], 16)
        # 26.9 thousand million weights, as the published model counts its text part.
        self.assertEqual(value["totals"]["weights"], 26895998464)


if __name__ == "__main__":
    unittest.main()
