# SPDX-License-Identifier: Apache-2.0
"""No sum of floats depends on who comes first: atomics, on a device and on the CPU, are of integers.

An atomic call of device code must take a pointer that its file declares as one to integers.
"""
import re

import tree

CALL = re.compile(r"\batomic[A-Z]\w*(?:_system|_block)?\s*\(\s*&?\s*(\w+)")
INTEGER = r"(?:u?int(?:32|64)_t|int|unsigned(?:\s+(?:int|long\s+long))?|unsigned long long)"
# Other spellings: of CUDA's and C++'s library, of PTX, of OpenMP.
OTHERS = [
    (re.compile(r"\batomic(?:_ref)?\s*<\s*(?:const\s+)?(?:float|double|__half2?|__nv_bfloat162?)\b"),
     "an atomic of floats"),
    (re.compile(r"\b(?:red|atom)\.[\w.]*\bv?\d?\.?(?:f16|bf16|f32|f64)"), "an atomic of floats"),
    (re.compile(r"#\s*pragma\s+omp\b.*\b(?:atomic|reduction)\b"), "a sum in the order of threads"),
    (re.compile(r"\bstd::(?:execution|transform_reduce)\b"), "a sum in an order of the library's"),
]


def check(root):
    problems, calls = [], 0
    for path in tree.paths(root):
        if not path.startswith(("kernels/", "engine/")):
            continue
        if not path.endswith(tree.CPP + (".cu.in",)):
            continue
        text = tree.read(root, path)
        for number, line in enumerate(text.split("\n"), 1):
            code = line.split("//")[0]
            for call in CALL.finditer(code):
                calls += 1
                pointer = re.compile(rf"\b{INTEGER}\s*\*\s*(?:const\s+)?(?:__restrict__\s+)?"
                                     rf"{call.group(1)}\b")
                if not pointer.search(text):
                    problems.append(f"{path}:{number}: '{call.group(0)}' is of no pointer to "
                                    "integers that this file declares")
            for pattern, what in OTHERS:
                if match := pattern.search(code):
                    problems.append(f"{path}:{number}: '{match.group(0)}' is {what}")
    if calls == 0:
        problems.append("kernels: no atomic call was found: the lint looks in the wrong place")
    return problems
