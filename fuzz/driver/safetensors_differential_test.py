# SPDX-License-Identifier: Apache-2.0
"""tools/safetensors-differential with stand-ins for the published package, which no gate installs:
the four outcomes, and that nothing but a verdict on every file counts as one.

Usage: safetensors_differential_test.py JUDGE_SAFETENSORS
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOADER = importlib.machinery.SourceFileLoader(
    "safetensors_differential", os.path.join(ROOT, "tools", "safetensors-differential"))
SPEC = importlib.util.spec_from_loader(LOADER.name, LOADER)
sys.dont_write_bytecode = True
tool = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(tool)

READER = ""
EMPTY = b"\x02\0\0\0\0\0\0\0{}"
NO_JSON = b"\x02\0\0\0\0\0\0\0{]"


def stand_in(body):
    """A reader: `body` is run for each `path`."""
    return [sys.executable, "-c", "import os, sys\n"
            "for path in sys.stdin.buffer.read().decode().split('\\0')[:-1]:\n"
            f"    {body}\n"]


ACCEPTS = stand_in("print('accept', flush=True)")
REFUSES = stand_in("print('refuse it is whole', flush=True)")
FAITHFUL = stand_in("print('accept' if open(path, 'rb').read().endswith(b'{}') else 'refuse x')")


class Differential(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def put(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def undecided(self, words, files, ours, theirs):
        with self.assertRaisesRegex(tool.Undecided, words):
            tool.compare(files, ours, theirs)

    def test_each_of_the_four_outcomes_is_counted(self):
        files = [self.put("a", EMPTY), self.put("b", NO_JSON), self.put("c\nd", EMPTY)]
        counts, alone = tool.compare(files, [READER], FAITHFUL)
        self.assertEqual((counts, alone), ({"accepted by both": 2, "refused by both": 1}, []))
        counts, alone = tool.compare(files, [READER], ACCEPTS)
        self.assertEqual((counts, alone), ({"accepted by both": 2, "refused by ours alone": 1}, []))
        counts, alone = tool.compare(files, [READER], REFUSES)
        self.assertEqual((counts, alone), ({"accepted by ours alone": 2, "refused by both": 1},
                                           [files[0], files[2]]))

    def test_a_reader_without_a_verdict_on_every_file_decides_nothing(self):
        files = [self.put("a", EMPTY), self.put("b", EMPTY)]
        dies = stand_in("os.abort() if path.endswith('b') else print('accept', flush=True)")
        self.undecided("the package ended with exit code -6 at .*b", files, [READER], dies)
        self.undecided("our reader ended with exit code -6 at .*b", files, dies, ACCEPTS)
        silent = stand_in("path.endswith('b') or print('accept')")
        self.undecided("the package ended with exit code 0 at .*b", files, [READER], silent)
        talks = stand_in("print('accept'), print('accept')")
        self.undecided("at the end", files, [READER], talks)
        self.undecided("the package ended", files, [READER], stand_in("print('perhaps')"))
        late = stand_in("print('accept')")
        late[-1] += "sys.exit(4)\n"
        self.undecided("exit code 4 at the end", files, [READER], late)
        self.undecided("does not run", files, [os.path.join(self.folder, "absent")], ACCEPTS)

    def test_a_file_that_cannot_be_read_is_not_a_refused_one(self):
        files = [self.put("a", EMPTY), os.path.join(self.folder, "absent")]
        self.undecided("our reader ended with exit code 1 at .*absent", files, [READER], ACCEPTS)
        self.undecided("exit code 1", [self.folder], [READER], ACCEPTS)

    def test_no_file_decides_nothing(self):
        self.undecided("no file", [], [READER], ACCEPTS)

    def test_the_tree_gives_its_corpora_regressions_and_vectors(self):
        files = tool.files_of_tree(ROOT, self.folder)
        names = [os.path.relpath(path, ROOT) for path in files]
        for start, least in (("fuzz/corpus/safetensors/", 80), ("fuzz/corpus/exl3_group/", 10),
                             ("golden/models/", 8)):
            self.assertGreaterEqual(sum(name.startswith(start) for name in names), least, start)
        self.assertGreaterEqual(sum(path.startswith(self.folder) for path in files), 73)
        self.assertNotIn("fuzz/regress/README.md", names)
        self.assertEqual(len(files), len(set(files)))
        # The vectors say what they are; both readers of that mind agree on every one.
        counts, _ = tool.compare([path for path in files if path.startswith(self.folder)],
                                 [READER], [READER])
        self.assertEqual(counts, {"accepted by both": 9, "refused by both": 64})

    def program(self, theirs, *arguments):
        """Runs the tool whole, with `theirs` for the package; returns (exit code, output)."""
        output = io.StringIO()
        command = ["safetensors-differential", "--no-build", "--python", sys.executable, *arguments]
        with mock.patch.object(sys, "argv", command), mock.patch.object(tool, "READER", READER), \
                mock.patch.object(tool, "PACKAGE", theirs[2]), \
                mock.patch.object(tool, "package_version", lambda python: "0"), \
                contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                code = tool.main()
            except SystemExit as end:
                code = end.code
        return code, output.getvalue()

    def test_the_exit_code_is_the_verdict(self):
        self.put("whole", EMPTY)
        code, output = self.program(ACCEPTS, self.folder)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"accepted by ours alone 0\n$")
        code, output = self.program(REFUSES, self.folder)
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"accepted by ours alone: \S*whole\n$")
        self.assertRegex(output, r"accepted by ours alone: \S+ of golden/format/safetensors_files")
        code, output = self.program(ACCEPTS, os.path.join(self.folder, "whole"))
        self.assertEqual(code, 2, output)
        code, output = self.program(stand_in("os.abort()"), self.folder)
        self.assertEqual(code, 3, output)


if __name__ == "__main__":
    READER = os.path.abspath(sys.argv.pop(1))
    unittest.main()
