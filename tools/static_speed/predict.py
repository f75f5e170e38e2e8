#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted times of the 27B, from counts of machine code and figures of cards. Nothing is run.

Usage: predict.py [--write]
Reads limits.json, cards.py and the log of the linears on an H200, and compares what follows with
docs/reports/speed-predicted.json and with the tables in docs/reports/speed.md; --write writes both.

The floor of a launch is the largest of four times, each as if nothing else took any:
  memory   weights and scales, read once a tile of rows, at the card's bandwidth
  issue    instructions per weight x weights / (multiprocessors x 4 schedulers x 32 lanes x clock)
  alu      the same for logic, shifts, byte permutes and compares, imad for integer products
  tensor   2 x padded rows x weights, at the rate of fp16 products with fp32 sums
Latencies, barriers, the ends of ranges, launches and partly filled grids are not in it. How much
they take is seen on the H200: there the same formula is compared with what was measured. A second
time, `as on the H200`, divides the times of instructions, not those of memory and tensor cores, by
the share that was reached there. It is no bound."""
import json
import os
import re
import sys

import cards
import hot

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIMITS = os.path.join(HERE, "limits.json")
MEASURED = os.path.join(ROOT, "docs", "reports", "h200", "linears.txt")
RESULT = os.path.join(ROOT, "docs", "reports", "speed-predicted.json")
PAGE = os.path.join(ROOT, "docs", "reports", "speed.md")
SCHEMA = "urn:hallmark:schema:speed-predicted:v1"
BEGIN = "<!-- predict.py --write: {} -->\n"
END = "<!-- end -->\n"

# tools/bench/exl3_linears.cc, LinearsOf27B: inputs, outputs of the linears of one launch, launches.
BODY = [(5120, [17408, 17408], 64), (17408, [5120], 64), (5120, [10240, 6144], 48),
        (5120, [12288, 1024, 1024], 16), (6144, [5120], 64)]
HEAD = (5120, [248320], 1)
HEAD_RATE = "mul1 K6"
TILES = sorted(hot.TILE_GROUPS)
CLASSES = ["hmma", "alu", "imad", "half", "shared", "global", "local", "uniform", "control"]
MIXES = {"mul1 K3 and K4": ["mul1 K3", "mul1 K4"], "mcg K3 and K4": ["mcg K3", "mcg K4"],
         "3inst K3 and K4": ["3inst K3", "3inst K4"]}
ROWS = [1, 8, 16, 32]
CALIBRATION_ROWS = [1, 8, 16, 32, 64, 128]
# Beside the linears: 48 states of 48 heads of 128 x 128 fp32; gates of 5120 x 96 bf16 in 48 layers;
# keys and values of 16 layers, 4 heads of 256, in fp8.
STATE = 48 * 48 * 128 * 128
GATES = 48 * 5120 * 96
POSITION_BYTES = 16 * 2 * 4 * 256
POSITIONS = 2048
WINDOW = 8
# The drafter: 1.92 G weights of 4 bits with a scale and an offset of 4 bytes for each 64; its slice
# of the head has 98,560 of 248,320 columns.
DRAFTER = 1.92e9
SLICE = 98560 / 248320


class Model:
    """Times on one card, in milliseconds."""

    def __init__(self, card, limits):
        self.card = cards.CARDS[card]
        self.limits = limits
        self.clocks = self.card["sms"] * self.card["gigahertz"] * 1e9 / 1e3  # a millisecond, all together

    def per_unit(self, kernel):
        """Instructions for one unit: all of them, and those of classes alu and imad."""
        work = self.limits[kernel][self.card["architecture"]]["work"][0]
        return [number / work["units"] for number in
                (work["all"], work["issued"].get("alu", 0), work["issued"].get("imad", 0))]

    def memory(self, size):
        return size / (self.card["gigabytes"] * 1e6)

    def issued(self, kernel, units):
        """Times of the schedulers and of two kinds of lanes for `units` of a kernel's work."""
        everything, alu, imad = self.per_unit(kernel)
        return {"issue": everything * units / (cards.ISSUED * self.clocks),
                "alu": alu * units / (self.card["alu"] * self.clocks),
                "imad": imad * units / (self.card["imad"] * self.clocks)}

    def linears(self, rate, groups, rows):
        """{bound: time} of launches of linears of one rate."""
        half_bits = int(2 * float(rate.split("K")[1]))
        tile = next((tile for tile in TILES if rows <= tile), TILES[-1])
        passes = -(-rows // tile)
        total = {"memory": 0.0, "issue": 0.0, "alu": 0.0, "imad": 0.0, "tensor": 0.0}
        for k, columns, times in groups:
            weights = k * sum(columns)
            scales = 2 * sum(k + n for n in columns)
            one = {"memory": self.memory(weights * half_bits / 16 + scales),
                   **self.issued(f"Exl3LinearKernel {rate}, {tile} rows", weights),
                   "tensor": 2 * max(tile, 8) * weights / (self.card["tensor"] * self.clocks)}
            for bound, time in one.items():
                total[bound] += passes * times * time
        return total

    def linears_pass(self, rates, rows, share=1.0):
        """The 401 linears, the body's weights shared evenly by `rates`: time, and what binds."""
        parts = [(self.linears(rate, BODY, rows), 1 / len(rates)) for rate in rates]
        parts.append((self.linears(HEAD_RATE, [HEAD], rows), 1))
        body = {bound: sum(part[bound] for part, _ in parts[:-1]) for bound in parts[0][0]}
        return sum(largest(part, share) * times for part, times in parts), max(body, key=body.get)

    def step(self, rates, share=1.0):
        """A serial step: linears, states read and written, gates, keys and values."""
        rest = self.memory(8 * STATE + 2 * GATES + POSITIONS * POSITION_BYTES)
        return self.linears_pass(rates, 1, share)[0] + rest

    def window(self, rates, share=1.0):
        """A window of 8 rows: it reads the states, and the replay of what was kept reads and writes
        them."""
        state = {"memory": self.memory(12 * STATE), **self.issued("DeltaNetKernel", 2 * WINDOW * STATE)}
        rest = self.memory(2 * GATES + POSITIONS * POSITION_BYTES)
        return self.linears_pass(rates, WINDOW, share)[0] + largest(state, share) + rest

    def draft(self, share=1.0):
        """The draft for it: the drafter's weights once for 8 rows, and its slice of the head."""
        drafter = {"memory": self.memory(DRAFTER * (0.5 + 8 / 64)),
                   **self.issued(f"AffineLinearKernel, {WINDOW} rows", DRAFTER)}
        head = self.linears(HEAD_RATE, [HEAD], WINDOW)
        return largest(drafter, share) + SLICE * largest(head, share)


def largest(times, share=1.0):
    """The time that binds; instructions at a share of their rate."""
    return max(time if bound in ("memory", "tensor") else time / share for bound, time in times.items())


def measured_linears(text):
    """{rate: {rows: milliseconds}} of the log of bench_exl3_linears."""
    result, rate, rows = {}, None, []
    for line in text.splitlines():
        if match := re.match(r"(\S+ K\S+), microseconds a launch", line):
            rate = match.group(1)
        elif line.startswith("rows"):
            rows = [int(word) for word in line.split()[1:]]
        elif line.startswith("pass, ms"):
            result[rate] = dict(zip(rows, map(float, line.split()[2:]), strict=True))
    return result


def shares(limits, measured):
    """Predicted over measured on the H200, for each rate and number of rows that was measured."""
    model = Model("H200", limits)
    rows = []
    for rate, times in measured.items():
        for count in CALIBRATION_ROWS:
            floor, binds = model.linears_pass([rate], count)
            rows.append({"binds": binds, "floor_ms": round(floor, 2), "measured_ms": times[count], "rate": rate,
                         "rows": count, "share": round(floor / times[count], 2)})
    return rows


def share_of(calibration, mix, rows):
    """The H200's share for a mix: the mean of what was measured of its codebook; 3inst takes mcg's."""
    codebook = mix.split()[0]
    known = [row["share"] for row in calibration if row["rows"] == rows and
             row["rate"].split()[0] == (codebook if codebook == "mul1" else "mcg")]
    return sum(known) / len(known)


def predict(limits, measured):
    calibration = shares(limits, measured)
    linears, rounds = [], []
    for card in ("RTX 3090 Ti", "GB10"):
        model = Model(card, limits)
        for mix, rates in MIXES.items():
            for rows in ROWS:
                floor, binds = model.linears_pass(rates, rows)
                likely, _ = model.linears_pass(rates, rows, share_of(calibration, mix, rows))
                linears.append({"as_on_h200_ms": round(likely, 1), "binds": binds, "card": card,
                                "floor_ms": round(floor, 1), "mix": mix, "rows": rows})
            one, window = share_of(calibration, mix, 1), share_of(calibration, mix, WINDOW)
            drafter = share_of(calibration, "mul1", WINDOW)  # its slice of the head is mul1
            figures = {"step": [model.step(rates), model.step(rates, one)],
                       "window": [model.window(rates), model.window(rates, window)],
                       "draft": [model.draft(), model.draft(drafter)]}
            rounds.append({"card": card, "mix": mix,
                           **{f"{part}_floor_ms": round(times[0], 1) for part, times in figures.items()},
                           **{f"{part}_as_on_h200_ms": round(times[1], 1) for part, times in figures.items()}})
    figures = {card: dict(values) for card, values in cards.CARDS.items()}
    return {"calibration": calibration, "cards": figures, "label": "predicted, not measured", "linears": linears,
            "rounds": rounds, "schema": SCHEMA}


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


def table(head, rows):
    return row(*head) + row(*["---"] * len(head)).replace(" ", "") + "".join(row(*cells) for cells in rows)


def two(one, part):
    return f"{one[part + 'floor_ms']} / {one[part + 'as_on_h200_ms']}"


def counts_page(limits):
    """What one lane issues for a weight, by tile height; and what a multiprocessor holds."""
    rates = [hot.rate_name(*rate) for rate in hot.RATES]
    linears = []
    for rate in rates:
        cells = []
        for tile in TILES:
            each = [limits[f"Exl3LinearKernel {rate}, {tile} rows"][arch]["work"][0] for arch in ("sm_86", "sm_121")]
            cells.append(" / ".join(f"{work['all'] / work['units']:.2f}" for work in each))
        linears.append([rate] + cells)
    classes = []
    for kernel in ("mul1 K3, 8 rows", "mul1 K3, 32 rows", "mcg K3, 8 rows", "mcg K3, 32 rows"):
        for arch in ("sm_86", "sm_121"):
            work = limits["Exl3LinearKernel " + kernel][arch]["work"][0]
            classes.append([kernel, arch] + [f"{work['issued'].get(kind, 0) / work['units']:.2f}" for kind in CLASSES])
    others = []
    for one in hot.kernels():
        if one.name.startswith(("Exl3LinearKernel", "Exl3DecodeKernel")) and one.name not in (
                "Exl3LinearKernel mul1 K3, 8 rows", "Exl3LinearKernel mul1 K3, 32 rows",
                "Exl3LinearKernel mul1 K3, 128 rows", "Exl3DecodeKernel mul1 K3"):
            continue
        by_arch = [limits[one.name][arch] for arch in ("sm_86", "sm_121")]
        both = [" / ".join(str(figures[what]) for figures in by_arch) for what in ("registers", "warps")]
        shown = []
        for works in zip(*(figures["work"] for figures in by_arch)):
            unit = works[0]["unit"]
            each = [f"{work['all'] / work['units']:.{0 if unit == 'whole kernel' else 2}f}" for work in works]
            shown.append(" / ".join(each))
        others.append([f"`{one.name}`", by_arch[0]["threads"], f"{by_arch[0]['shared']:,}", *both, "; ".join(shown),
                       one.unit])
    return ("Instructions per weight of the EXL3 linear, sm_86 / sm_121, by the rows of a tile:\n\n" +
            table(["rate"] + [str(tile) for tile in TILES], linears) +
            "\nThe same by class (`sass.py` lists them: alu has LOP3, SHF, PRMT, adds, compares and moves; imad IMAD and "
            "IDP;\nglobal LDG and cp.async; control jumps, barriers and empty slots):\n\n" +
            table(["tile", "on", *CLASSES], classes) +
            "\nsm_86 / sm_121. Shared memory is a block's, static and dynamic; warps are those that one "
            "multiprocessor\nholds at once, of 48:\n\n" +
            table(["kernel", "threads", "shared, bytes", "registers", "warps", "instructions", "for one"], others))


def predicted_page(result):
    """The tables of the page."""
    calibration = [[one["rate"], one["rows"], f"{one['floor_ms']:.2f}", one["binds"], f"{one['measured_ms']:.2f}",
                    f"{one['share']:.2f}"] for one in result["calibration"]]
    linears = []
    for card in ("RTX 3090 Ti", "GB10"):
        for mix in MIXES:
            found = [one for one in result["linears"] if one["card"] == card and one["mix"] == mix]
            linears.append([card, mix] + [f"{two(one, '')} ({one['binds']})" for one in found])
    rounds = [[one["card"], one["mix"], *(two(one, part + "_") for part in ("step", "window", "draft")),
               f"{one['window_floor_ms'] + one['draft_floor_ms']:.1f} / "
               f"{one['window_as_on_h200_ms'] + one['draft_as_on_h200_ms']:.1f}"] for one in result["rounds"]]
    return ("The formula on the H200, milliseconds for the 401 linears, beside the log:\n\n" +
            table(["rate", "rows", "floor", "binds", "measured", "floor / measured"], calibration) +
            "\n**Predicted, not measured**: the 401 linears, milliseconds, the floor / as on the H200 (what binds the "
            "floor):\n\n" +
            table(["card", "27B"] + [f"{rows} row{'s' * (rows > 1)}" for rows in ROWS], linears) +
            f"\n**Predicted, not measured**: a serial step and a round with a window of {WINDOW} rows, at {POSITIONS:,} "
            "positions,\nmilliseconds, the floor / as on the H200:\n\n" +
            table(["card", "27B", "serial step", "window", "draft", "round"], rounds))


def main():
    with open(LIMITS, encoding="utf-8") as file:
        limits = json.load(file)["kernels"]
    with open(MEASURED, encoding="utf-8") as file:
        measured = measured_linears(file.read())
    result = predict(limits, measured)
    text = json.dumps(result, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    with open(PAGE, encoding="utf-8") as file:
        old = file.read()
    new = old
    for name, content in (("counts", counts_page(limits)), ("predicted", predicted_page(result))):
        before, rest = new.split(BEGIN.format(name))
        new = before + BEGIN.format(name) + content + END + rest.split(END, 1)[1]
    if "--write" in sys.argv:
        for path, content in ((RESULT, text), (PAGE, new)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        return 0
    stale = [os.path.relpath(PAGE, ROOT)] * (new != old)
    with open(RESULT, encoding="utf-8") as file:
        stale += [os.path.relpath(RESULT, ROOT)] * (file.read() != text)
    for name in stale:
        print(f"{name}: not what limits.json, cards.py and the log give (predict.py --write)")
    print(f"{len(result['linears'])} predictions, {len(result['calibration'])} compared with the H200: "
          f"{len(stale)} stale files")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
