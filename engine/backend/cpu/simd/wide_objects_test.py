#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Objects compiled for wide instructions share no code with the rest of the program.

Usage: wide_objects_test.py LIBRARY NM
A weak symbol in such an object (an inline function of a shared header, say) may be the copy the linker
keeps for everybody, and then the program dies on a machine without those instructions. Allowed are the
accessors of the loop tables and nothing else.
"""
import re
import subprocess
import sys

WIDE = re.compile(r"(linear|mixers)_avx\w+\.cc\.o")
ACCESSOR = re.compile(r"_ZN8hallmark\d+Avx\w+LoopsEv$")
FEWEST_OBJECTS = 4


def main():
    library, nm = sys.argv[1:]
    lines = subprocess.run([nm, "--defined-only", "-A", library], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    objects, accessors, problems = set(), set(), []
    for line in lines:
        match = WIDE.search(line)
        if match is None:
            continue
        kind, symbol = line.split()[-2:]
        objects.add(match.group())
        if ACCESSOR.match(symbol):
            accessors.add(symbol)
        elif kind not in "tdbrn":  # lower case: local to the object
            problems.append(f"{match.group()}: {kind} {symbol}")
    if len(objects) < FEWEST_OBJECTS or len(accessors) != len(objects):
        problems.append(f"{len(objects)} objects with {len(accessors)} accessors, expected at least "
                        f"{FEWEST_OBJECTS} with one each")
    print("\n".join(problems) if problems else f"{len(objects)} objects keep to themselves")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
