# SPDX-License-Identifier: Apache-2.0
"""The layer rule: a folder includes only itself and what stands above it (docs/design/layers.md)."""
import os
import re

import tree

LAYERS = [
    "engine/base", "kernels", "engine/format", "engine/text", "engine/backend", "engine/model",
    "engine/draft", "engine/run", "conformance", "golden", "fuzz", "receipts", "tools", "docs",
]
# A unit test stands beside its file and finds golden data through the harness.
TEST_SUFFIXES = ("_test.cc", "_prop.cc", "_fuzz.cc", "_test.cu", "_bench.cc")
TEST_MAY_INCLUDE = "conformance/harness/"
# Slow to compile and contagious: only .cc files include them.
HEAVY = re.compile(r"^(CLI/|fmt/|nlohmann/json\.hpp|gtest/|rapidcheck)")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def layer_of(path):
    """Index of the layer a path lies in, or None."""
    for index, layer in enumerate(LAYERS):
        if path.startswith(layer + "/"):
            return index
    return None


def check(root):
    problems = []
    for path in tree.cpp_paths(root):
        own = layer_of(path)
        if own is None:
            problems.append(f"{path}: lies in no layer; expected one of {', '.join(LAYERS)}")
            continue
        for quote, target in INCLUDE.findall(tree.read(root, path)):
            if quote == "<":
                if path.endswith((".h", ".cuh")) and HEAVY.match(target):
                    problems.append(f"{path}: a header includes <{target}>; only .cc files may")
                continue
            layer = layer_of(target)
            if layer is None or not os.path.exists(os.path.join(root, target)):
                problems.append(f'{path}: "{target}" is no file of the tree (paths start at the root)')
            elif layer > own and not (path.endswith(TEST_SUFFIXES) and
                                      target.startswith(TEST_MAY_INCLUDE)):
                problems.append(f'{path}: {LAYERS[own]} may not include {LAYERS[layer]} ("{target}")')
    return problems
