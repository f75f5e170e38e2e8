#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the machine code of the hot kernels says of their speed, without a GPU.

Usage: counts.py BUILD OBJECTS LAUNCHES [--write]
       counts.py --against NVDISASM BUILD OBJECTS
OBJECTS is a file that lists the kernels' object files, LAUNCHES the program of launches.cu. For
sm_86, sm_121 and, to compare the model with what was measured, sm_90: registers, threads and shared
memory of a launch, the blocks and warps that a multiprocessor holds, and the instructions of one
time round the main loop by class, with what that time round does. Checks them against limits.json:
nothing may grow, no multiprocessor may hold fewer warps. --write sets the limits to what was found:
only for review by eye. --against compares the table of operations and every jump with a
disassembler's text, for every kernel of every architecture in the objects."""
import json
import os
import re
import subprocess
import sys
import tempfile

import cubin
import hot
import sass

HERE = os.path.dirname(os.path.abspath(__file__))
LIMITS = os.path.join(HERE, "limits.json")
SCHEMA = "urn:hallmark:schema:speed-limits:v1"
COUNTED = ("86", "90", "121")
RESERVED = 1024  # bytes of a block's shared memory that the system keeps; objects list them from sm_90 on
LINE = re.compile(r"^\s+/\*([0-9a-f]+)\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_]+)([^;]*);\s+/\* 0x([0-9a-f]+) \*/")
HIGH = re.compile(r"^\s+/\* 0x([0-9a-f]+) \*/")
SYNONYMS = {"CGAERRBAR": "ERRBAR", "REDG": "RED"}


def work_of(one, words, arch):
    """[what one time round a main loop does and issues] of a kernel."""
    code = sass.decode(words, arch)
    if one.unit == "whole kernel":
        loops = [sass.Loop([step for step in code if step.name != "NOP"], 0)]
        loops[0].aside = 0
    else:
        loops = sass.main_loops(code)
        if not loops:
            raise cubin.Unreadable(f"{one.name}: no loop")
    result = []
    for loop in loops:
        units = one.units(loop) if callable(one.units) else one.units
        issued = {kind: number for kind, number in loop.classes.items() if number}
        result.append({"all": loop.all, "aside": loop.aside, "issued": issued, "unit": one.unit,
                       "units": units})
    return result


def find(objects, architectures):
    """{kernel name of hot.py: {architecture: cubin.Kernel}} and problems."""
    wanted = hot.kernels()
    found = {one.name: {} for one in wanted}
    problems = []
    for path in objects:
        for kernel in cubin.kernels(path, architectures):
            for one in wanted:
                if one.pattern.search(kernel.name):
                    if kernel.arch in found[one.name]:
                        problems.append(f"{one.name} on sm_{kernel.arch}: two kernels have that name")
                    found[one.name][kernel.arch] = kernel
    for name, by_arch in found.items():
        for arch in sorted(architectures - set(by_arch)):
            problems.append(f"{name}: no machine code for sm_{arch} in this build")
    return found, problems


def run(launches, mode, text=""):
    return subprocess.run([launches, mode], input=text, capture_output=True, text=True, check=True).stdout


def read(objects, launches, architectures):
    """{kernel: {"sm_NN": figures}} and problems."""
    found, problems = find(objects, architectures)
    dynamic = {}
    for line in run(launches, "shared").splitlines():
        name, size = line.rsplit(" ", 1)
        dynamic[name] = int(size)
    result, rows = {}, []
    for one in hot.kernels():
        for arch, kernel in found[one.name].items():
            static = kernel.shared
            if int(arch) >= 90 and static:
                static -= RESERVED
            threads = one.threads or kernel.threads
            extra = dynamic[one.shared] if one.shared else 0
            try:
                work = work_of(one, kernel.words, arch)
            except (cubin.Unreadable, ValueError) as error:
                problems.append(f"{one.name} on sm_{arch}: {error}")
                continue
            entry = {"registers": kernel.registers, "shared": static + extra, "threads": threads, "work": work}
            result.setdefault(one.name, {})["sm_" + arch] = entry
            rows.append((entry, f"{arch} {kernel.registers} {threads} {static} {extra}\n"))
    blocks = run(launches, "blocks", "".join(line for _, line in rows)).split()
    for (entry, _), number in zip(rows, blocks, strict=True):
        entry["blocks"] = int(number)
        entry["warps"] = int(number) * ((entry["threads"] + 31) // 32)
    return result, problems


def check_work(where, found, limits):
    problems = []
    if len(found) != len(limits):
        return [f"{where}: {len(found)} main loops, the limits know {len(limits)}"]
    for number, (work, limit) in enumerate(zip(found, limits)):
        at = where + (f", loop {number + 1}" if len(found) > 1 else "")
        if work["unit"] != limit["unit"]:
            problems.append(f"{at}: counted by {work['unit']}, the limits by {limit['unit']}")
            continue
        pairs = [(kind, work["issued"].get(kind, 0), limit["issued"].get(kind, 0)) for kind in sass.CLASSES]
        pairs += [(kind, work[kind], limit[kind]) for kind in ("all", "aside")]
        for kind, value, most in pairs:
            # Loops unrolled differently are compared by what they do.
            if value * limit["units"] > most * work["units"]:
                what = "instructions" if kind == "all" else f"instructions of class {kind}"
                problems.append(f"{at}: {value} {what} for {work['units']} x {work['unit']}, the limit is "
                                f"{most} for {limit['units']}")
    return problems


def check(found, limits, architectures):
    problems = []
    names = {"sm_" + arch for arch in architectures}
    for kernel, by_arch in sorted(found.items()):
        for arch, used in sorted(by_arch.items()):
            limit = limits.get(kernel, {}).get(arch)
            if limit is None:
                problems.append(f"limits.json: no limits for {kernel} on {arch}")
                continue
            where = f"{kernel} on {arch}"
            for what in ("registers", "shared", "threads"):
                if used[what] > limit[what]:
                    problems.append(f"{where}: {used[what]} {what}, the limit is {limit[what]}")
            for what in ("blocks", "warps"):
                if used[what] < limit[what]:
                    problems.append(f"{where}: a multiprocessor holds {used[what]} {what}, at least "
                                    f"{limit[what]} are asked for")
            problems += check_work(where, used["work"], limit["work"])
    for kernel, by_arch in sorted(limits.items()):
        for arch in sorted(names & set(by_arch)):
            if arch not in found.get(kernel, {}):
                problems.append(f"limits.json: {kernel} on {arch} was not found in this build")
    return problems


def built_architectures(objects):
    return {arch for path in objects for arch, _ in cubin.elf_files(path)}


def listing_of(text):
    """{kernel: {index: (operation, target's index or None, word)}} of nvdisasm's text."""
    result, labels, jumps, waiting, code, high = {}, {}, [], [], None, None
    for line in text.splitlines():
        if line.startswith(".text.") and line.endswith(":"):
            code = result.setdefault(line[len(".text."):-1], {})
            waiting = []
        elif re.match(r"^\.L_\S+:$", line):
            waiting.append(line[:-1])
        elif code is not None and (match := LINE.match(line)):
            index = int(match.group(1), 16) // 16
            for label in waiting:
                labels[label] = index
            waiting = []
            high = index
            code[index] = [SYNONYMS.get(match.group(2), match.group(2)), None, int(match.group(4), 16)]
            if target := re.search(r"`\((\.L_[^)]+)\)", match.group(3)):
                jumps.append((code[index], target.group(1)))
        elif code is not None and high is not None and (match := HIGH.match(line)):
            code[high][2] |= int(match.group(1), 16) << 64
            high = None
    for one, label in jumps:
        one[1] = labels.get(label)
    return result


def compare(kernel, lines):
    """Differences between one kernel, read here, and a disassembler's lines; and how many lines."""
    problems = []
    code = sass.decode(kernel.words, kernel.arch)
    if len(code) != len(lines):
        problems.append(f"{len(code)} instructions, the disassembler shows {len(lines)}")
    for index, (name, target, _) in lines.items():
        mine = code[index]
        if mine.name != name:
            problems.append(f"0x{16 * index:04x}: {mine.name}, the disassembler says {name}")
        if mine.name == "BRA" and target is not None and mine.target != target:
            problems.append(f"0x{16 * index:04x}: jumps to {mine.target}, the disassembler says {target}")
    return problems, len(lines)


def against(disassembler, objects):
    problems, instructions, number = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "one.cubin")
        for name in objects:
            for arch, elf in cubin.elf_files(name):
                with open(path, "wb") as file:
                    file.write(elf)
                text = subprocess.run([disassembler, "-c", "-hex", path], capture_output=True, text=True,
                                      check=True).stdout
                listing = listing_of(text)
                for kernel in cubin.kernels_of_elf(elf, arch):
                    number += 1
                    if kernel.name not in listing:
                        problems.append(f"{kernel.name} on sm_{arch}: not in the disassembler's text")
                        continue
                    more, lines = compare(kernel, listing[kernel.name])
                    instructions += lines
                    problems += [f"{kernel.name} on sm_{arch}: {problem}" for problem in more]
    return problems, number, instructions


def main():
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    if "--against" in sys.argv:
        disassembler, _, listing = arguments
        with open(listing, encoding="utf-8") as file:
            problems, number, instructions = against(disassembler, file.read().split())
        for problem in problems:
            print(problem)
        print(f"{number} kernels, {instructions} instructions: {len(problems)} differences")
        return 1 if problems or not instructions else 0
    _, listing, launches = arguments
    with open(listing, encoding="utf-8") as file:
        objects = file.read().split()
    architectures = built_architectures(objects) & set(COUNTED)
    if not architectures:
        print("this build has code for none of " + ", ".join("sm_" + arch for arch in COUNTED))
        return 1
    found, problems = read(objects, launches, architectures)
    if "--write" in sys.argv:
        if architectures != set(COUNTED) or problems:
            print("\n".join(problems + ["limits are written from a build for all of them alone"]))
            return 1
        with open(LIMITS, "w", encoding="utf-8") as file:
            json.dump({"kernels": found, "schema": SCHEMA}, file, indent=2, sort_keys=True)
            file.write("\n")
        return 0
    with open(LIMITS, encoding="utf-8") as file:
        limits = json.load(file)["kernels"]
    problems += check(found, limits, architectures)
    for problem in problems:
        print(problem)
    print(f"{len(found)} kernels on {', '.join('sm_' + a for a in sorted(architectures, key=int))}: "
          f"{len(problems)} problems")
    return 1 if problems or not found else 0


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    sys.exit(main())
