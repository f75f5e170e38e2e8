# SPDX-License-Identifier: Apache-2.0
"""Writes the copy of a source file that carries one planted fault.

Usage: patch.py ENTRY.json ORIGINAL PATCHED. Fails unless the text to replace occurs exactly once,
so that a fault cannot go stale unseen.
"""
import json
import os
import sys


def plant(entry, text):
    """Returns `text` with the fault of `entry`; raises ValueError when it does not fit."""
    found = text.count(entry["find"])
    if found != 1:
        raise ValueError(
            f'conformance/mutants/mutants.json: "{entry["name"]}": the text to find occurs '
            f'{found} times in {entry["file"]}, expected 1')
    if entry["find"] == entry["replace"]:
        raise ValueError(f'conformance/mutants/mutants.json: "{entry["name"]}" changes nothing')
    return text.replace(entry["find"], entry["replace"])


def main(entry_path, original, patched):
    with open(entry_path, encoding="utf-8") as file:
        entry = json.load(file)
    with open(original, encoding="utf-8") as file:
        text = file.read()
    try:
        text = plant(entry, text)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    os.makedirs(os.path.dirname(patched), exist_ok=True)
    with open(patched, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
