#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints one SHA-256 over the kernels' sources: what a published receipt of a GPU was made with."""
import hashlib
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = (".cu", ".cuh", ".h", ".in")


def kernels_digest():
    total = hashlib.sha256()
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(ROOT, "kernels"))
             for name in names if name.endswith(SOURCES)]
    for path in sorted(paths):
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        total.update(f"{digest}  {os.path.relpath(path, ROOT)}\n".encode())
    return total.hexdigest()


if __name__ == "__main__":
    sys.exit(print(kernels_digest()))
