#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a build proves of its kernels without a GPU.

Usage: static_contract.py BUILD OBJECTS [--write]
OBJECTS is a file that lists the kernels' object files. Checks, against kernels/limits.json:
  - every kernel was compiled for every architecture that is promised, or for those of this build
    when its configuration names fewer;
  - registers, spilled bytes and static shared memory of each kernel are within its limit, and
    each limit still names a kernel;
  - no compile command of device code asks for fast math, and every one forbids fused multiply-add;
  - every .cu file has its entry in docs/kernels.md, and each entry its file.
--write sets the limits to what was found: only for review by eye.
"""
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMITS = os.path.join(ROOT, "kernels", "limits.json")
SCHEMA = "urn:hallmark:schema:kernel-limits:v1"
PROMISED = {"80", "86", "89", "90", "120", "121"}
ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)\w*'")
SPILL = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
FAST = re.compile(r"fast.?math|--ftz=true|prec-div=false|prec-sqrt=false|fmad=true", re.IGNORECASE)


def kernel_name(mangled):
    """The identifier that ends in Kernel; template arguments share one limit."""
    names = []
    at = 0
    while at < len(mangled):
        match = re.match(r"\d+", mangled[at:])
        if not match:
            at += 1
            continue
        length = int(match.group())
        at += match.end()
        name = mangled[at:at + length]
        if name.endswith("Kernel"):
            names.append(name)
        if re.match(r"[A-Za-z_]\w*$", name) and len(name) == length:
            at += length
    return names[-1] if names else mangled


def read_reports(objects):
    """kernel -> architecture -> worst of registers, spills, shared; and which files gave none."""
    found, silent = {}, []
    for path in objects:
        try:
            with open(path + ".ptxas", encoding="utf-8") as file:
                lines = file.read().splitlines()
        except OSError:
            silent.append(path)
            continue
        kernel = arch = None
        for line in lines:
            if match := ENTRY.search(line):
                kernel, arch = kernel_name(match.group(1)), match.group(2)
                found.setdefault(kernel, {}).setdefault(
                    arch, {"registers": 0, "spilled": 0, "shared": 0})
            elif kernel is not None:
                worst = found[kernel][arch]
                if match := SPILL.search(line):
                    spilled = int(match.group(2)) + int(match.group(3))
                    worst["spilled"] = max(worst["spilled"], spilled)
                if match := USED.search(line):
                    worst["registers"] = max(worst["registers"], int(match.group(1)))
                if match := SHARED.search(line):
                    worst["shared"] = max(worst["shared"], int(match.group(1)))
    return found, silent


def check_limits(found, limits):
    problems = []
    for kernel, by_arch in sorted(found.items()):
        limit = limits.get(kernel)
        if limit is None:
            problems.append(f"kernels/limits.json: no limits for {kernel}")
            continue
        for arch, used in sorted(by_arch.items()):
            for what, value in used.items():
                if value > limit[what]:
                    problems.append(f"{kernel} on sm_{arch}: {value} {what}, the limit is {limit[what]}")
    for kernel in sorted(set(limits) - set(found)):
        problems.append(f"kernels/limits.json: {kernel} is no kernel of this build")
    return problems


def check_architectures(found, built):
    problems = []
    for kernel, by_arch in sorted(found.items()):
        for arch in sorted(built - set(by_arch)):
            problems.append(f"{kernel} was not compiled for sm_{arch}")
    return problems


def check_commands(build):
    problems, seen = [], 0
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            if not entry["file"].endswith(".cu"):
                continue
            seen += 1
            name = os.path.relpath(entry["file"], ROOT)
            if match := FAST.search(entry["command"]):
                problems.append(f"{name}: compiled with {match.group()}")
            if "--fmad=false" not in entry["command"]:
                problems.append(f"{name}: compiled without --fmad=false")
    if seen == 0:
        problems.append("compile_commands.json: no device code was compiled")
    return problems


def check_documents():
    with open(os.path.join(ROOT, "docs", "kernels.md"), encoding="utf-8") as file:
        entries = set(re.findall(r"^## (kernels/\S+)$", file.read(), re.MULTILINE))
    files = set()
    for folder, _, names in os.walk(os.path.join(ROOT, "kernels")):
        for name in names:
            if name.endswith((".cu", ".cu.in")):
                files.add(os.path.relpath(os.path.join(folder, name), ROOT))
    return ([f"docs/kernels.md: no entry for {name}" for name in sorted(files - entries)] +
            [f"docs/kernels.md: {name} is no file" for name in sorted(entries - files)])


def architectures_of(build):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("CMAKE_CUDA_ARCHITECTURES:"):
                named = set(re.findall(r"(\d+)(?:-real|-virtual)?", line.split("=", 1)[1]))
                if named:
                    return named
    return PROMISED


def main():
    build, listing = sys.argv[1:3]
    with open(listing, encoding="utf-8") as file:
        objects = file.read().split()
    found, silent = read_reports(objects)
    if "--write" in sys.argv:
        limits = {kernel: {what: max(used[what] for used in by_arch.values())
                           for what in ("registers", "spilled", "shared")}
                  for kernel, by_arch in found.items()}
        with open(LIMITS, "w", encoding="utf-8") as file:
            json.dump({"limits": limits, "schema": SCHEMA}, file, indent=2, sort_keys=True)
            file.write("\n")
        return 0
    with open(LIMITS, encoding="utf-8") as file:
        limits = json.load(file)["limits"]
    problems = [f"{os.path.relpath(path, build)}: ptxas left no report" for path in silent]
    built = architectures_of(build)
    problems += check_limits(found, limits) + check_architectures(found, built)
    problems += check_commands(build) + check_documents()
    for problem in problems:
        print(problem)
    print(f"{len(found)} kernels on {', '.join('sm_' + a for a in sorted(built, key=int))}: "
          f"{len(problems)} problems")
    return 1 if problems or not found else 0


if __name__ == "__main__":
    sys.exit(main())
