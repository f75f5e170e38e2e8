#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions per weight of the EXL3 linear as it was at earlier commits.

Usage: history.py COMMIT...
Takes each commit's sources from git, compiles three rates with nvcc for sm_86 and sm_121 as the
build does, and prints registers, instructions per weight and moves from and to local memory in one
time round the loop (spills), of every tile height. Only for kernels
with that name and those template arguments: what one time round does is read off its products."""
import os
import subprocess
import sys
import tempfile

import counts
import cubin
import hot

ROOT = os.path.dirname(os.path.dirname(counts.HERE))
ARCHITECTURES = ("86", "121")
FLAGS = ["-O3", "-DNDEBUG", "-std=c++20", "--fmad=false", "--expt-relaxed-constexpr", "-x", "cu", "-c"]
RATES = [(2, 6), (2, 8), (1, 8)]


def kernels_at(commit):
    """Every kernel of three rates of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "-C", ROOT, "archive", commit, "kernels", "engine"], check=True,
                                 stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        with open(os.path.join(folder, "kernels/exl3/exl3_rate.cu.in"), encoding="utf-8") as file:
            text = file.read()
        for codebook, half_bits in RATES:
            source = os.path.join(folder, "rate.cu")
            with open(source, "w", encoding="utf-8") as file:
                file.write(text.replace("@CODEBOOK@", str(codebook)).replace("@K2@", str(half_bits)))
            codes = [f"--generate-code=arch=compute_{arch},code=[sm_{arch}]" for arch in ARCHITECTURES]
            subprocess.run(["nvcc", *codes, *FLAGS, "-I", folder, "-o", source + ".o", source], check=True)
            yield from cubin.kernels(source + ".o", set(ARCHITECTURES))


def main():
    if len(sys.argv) < 2:
        print("history.py: expected a commit")
        return 2
    for commit in sys.argv[1:]:
        found = {}
        for kernel in kernels_at(commit):
            for one in hot.kernels():
                if one.pattern.search(kernel.name):
                    loop, = counts.work_of(one, kernel.words, kernel.arch)
                    found[(one.name, kernel.arch)] = (kernel.registers, loop["all"] / loop["units"],
                                                       loop["issued"].get("local", 0))
        for name in sorted({name for name, _ in found}, key=lambda name: (name.split(",")[0], len(name), name)):
            figures = [found[(name, arch)] for arch in ARCHITECTURES]
            print(f"{commit}  {name:32}" + "".join(
                f"  sm_{arch} {registers:3} registers {each:5.2f} a weight {spills:2} spills"
                for arch, (registers, each, spills) in zip(ARCHITECTURES, figures)))
        if not found:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
