#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiler launcher for device code: asks ptxas what each kernel uses and keeps its answer.

Usage: ptxas_report.py COMPILER ARGUMENT...
Adds `-Xptxas -v`, writes ptxas' lines to <object>.ptxas beside the object file, and passes every
other line of the compiler's standard error on. The report is what kernels/static_contract.py judges.
"""
import re
import subprocess
import sys

PTXAS = re.compile(r"^(ptxas info|\s+\d+ bytes (stack|cumulative)|\s*$)")


def main():
    command = sys.argv[1:]
    try:
        target = command[command.index("-o") + 1]
    except (ValueError, IndexError):
        return subprocess.run(command, check=False).returncode
    result = subprocess.run(command + ["-Xptxas", "-v"], stderr=subprocess.PIPE, text=True, check=False)
    report = []
    for line in result.stderr.splitlines():
        if PTXAS.match(line):
            report.append(line)
        else:
            print(line, file=sys.stderr)
    if result.returncode == 0 and target.endswith(".o"):
        with open(target + ".ptxas", "w", encoding="utf-8") as file:
            file.write("\n".join(report) + "\n")
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
