#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one lint over the tree, or all that need no build: lint.py [NAME] [--write].

Names: layers, length, licence, words, format, documents, clauses, atomics, labels. Each is a ctest of the
label `lint`. Exit 0 clean, 1 with one line a problem, 2 usage.
"""
import argparse
import os
import sys

import atomics
import clauses
import documents
import files
import formatting
import labels
import layers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = ("layers", "length", "licence", "words", "format", "documents", "clauses", "atomics")


def run(name, options):
    """Returns (problems, remarks) of one lint."""
    root = options.root
    if name == "length":
        return files.check_length(root)
    if name == "labels":
        with open(options.suites, encoding="utf-8") as file:
            suites = file.read().split()
        return labels.check(options.build, suites), []
    checks = {
        "layers": lambda: layers.check(root),
        "licence": lambda: files.check_licence(root),
        "words": lambda: files.check_words(root),
        "format": lambda: formatting.check(root),
        "documents": lambda: documents.check(root),
        "atomics": lambda: atomics.check(root),
        "clauses": lambda: clauses.check(root, options.write),
    }
    return checks[name](), []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=NAMES + ("labels",))
    parser.add_argument("--root", default=ROOT)
    parser.add_argument("--build", help="build folder, for labels")
    parser.add_argument("--suites", help="file with the suites of that build, for labels")
    parser.add_argument("--write", action="store_true", help="rewrite the built pages of docs/contract")
    options = parser.parse_args()
    if options.name == "labels" and not (options.build and options.suites):
        parser.error("labels needs --build and --suites")
    bad = False
    for name in [options.name] if options.name else NAMES:
        problems, remarks = run(name, options)
        for line in remarks:
            print(f"{name}: remark: {line}")
        for line in problems:
            print(f"{name}: {line}")
        print(f"{name}: {'clean' if not problems else f'{len(problems)} problems'}")
        bad = bad or bool(problems)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
