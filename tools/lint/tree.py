# SPDX-License-Identifier: Apache-2.0
"""The files a lint looks at, as (relative path, text) pairs in a fixed order."""
import os

SKIPPED_FOLDERS = {"build", "__pycache__"}  # and hidden ones, except .ci
CPP = (".h", ".cc", ".inl", ".cuh", ".cu")


def paths(root):
    """Yields every file of the tree relative to `root`, with '/' separators, sorted."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS and
                            (name == ".ci" or not name.startswith(".")))
        for name in files:
            found.append(os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/"))
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def cpp_paths(root):
    return [path for path in paths(root) if path.endswith(CPP)]


def is_script(root, path):
    """True for Python files and for executables that start with a shebang."""
    if path.endswith(".py"):
        return True
    if "." in os.path.basename(path):
        return False
    with open(os.path.join(root, path), "rb") as file:
        return file.read(2) == b"#!"
