# SPDX-License-Identifier: Apache-2.0
"""Rules for single files: length, licence line, words that do not belong into the project."""
import re

import tree

MAX_LINES = 600
LONG_LINES = 500
LICENCE = "SPDX-License-Identifier: Apache-2.0"
TEXT = tree.CPP + (".py", ".md", ".json", ".cmake", ".txt", ".in", ".yml", ".yaml")
# Each with what is wrong about it. Written so that this file does not match itself.
FORBIDDEN = [
    (re.compile(r"(?<![\w$})\"'.])/(?:work|home|Users|tmp|root)/"), "a path of one machine"),
    (re.compile(r"\b(?:TO[D]O|FIXM[E]|XX[X])\b"), "a note to self: finish it or write it down in docs"),
    (re.compile(r"\bissues? #?\d+\b", re.IGNORECASE), "a tracker number, which outlives no move"),
]
# Recorded evidence and third-party forms keep their bytes.
UNTOUCHED = ("golden/models/", "golden/format/", "golden/text/", "golden/run/", "golden/kernel/")


def is_code(root, path):
    return path.endswith(tree.CPP) or tree.is_script(root, path)


def check_length(root):
    """Returns (problems, remarks): files above the limit, files that should say why."""
    problems, remarks = [], []
    for path in tree.paths(root):
        if not (is_code(root, path) or path.endswith((".cmake", "CMakeLists.txt"))):
            continue
        lines = tree.read(root, path).count("\n")
        if lines > MAX_LINES:
            problems.append(f"{path}: {lines} lines, at most {MAX_LINES} are allowed")
        elif lines > LONG_LINES:
            remarks.append(f"{path}: {lines} lines; above {LONG_LINES} it should be worth it")
    return problems, remarks


def check_licence(root):
    problems = []
    for path in tree.paths(root):
        if not is_code(root, path):
            continue
        head = tree.read(root, path).split("\n")[:2]
        line = head[1] if head[0].startswith("#!") and len(head) > 1 else head[0]
        if LICENCE not in line:
            problems.append(f"{path}: the first line must be '{LICENCE}' in a comment")
    return problems


def check_words(root):
    problems = []
    for path in tree.paths(root):
        if path.startswith(UNTOUCHED):
            continue
        if not (path.endswith(TEXT) or tree.is_script(root, path)):
            continue
        for number, line in enumerate(tree.read(root, path).split("\n"), 1):
            for pattern, reason in FORBIDDEN:
                match = pattern.search(line)
                if match:
                    problems.append(f"{path}:{number}: '{match.group(0)}' is {reason}")
    return problems
