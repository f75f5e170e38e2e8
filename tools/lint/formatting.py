# SPDX-License-Identifier: Apache-2.0
"""clang-format leaves every C++ file as it is. One version, or two would disagree."""
import shutil
import subprocess

import tree

WANTED = "clang-format-14"


def check(root):
    program = shutil.which(WANTED)
    if program is None:
        return [f"{WANTED} is not installed; ./tools/setup installs it"]
    files = tree.cpp_paths(root)
    if not files:
        return ["no C++ file found: nothing was checked"]
    done = subprocess.run([program, "--dry-run", "-Werror", "--ferror-limit=3", *files], cwd=root,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode == 0:
        return []
    lines = [line for line in done.stdout.decode().split("\n") if "error:" in line]
    return lines[:40] + [f"run: {WANTED} -i FILE"]
