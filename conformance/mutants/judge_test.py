# SPDX-License-Identifier: Apache-2.0
"""The judge of planted faults must itself turn red: unseen faults, crashes, empty filters."""
import os
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judge  # pylint: disable=wrong-import-position
import patch  # pylint: disable=wrong-import-position

# A stand-in for a gtest executable. CASES maps a filter to {case: passed}; "crash" kills it.
STAND_IN = """#!{python}
import json, os, sys
cases = {cases}
options = dict(a[2:].split("=", 1) for a in sys.argv[1:])
chosen = cases.get(options["gtest_filter"], {{}})
if chosen == "crash":
    os.abort()
suite = [dict(name=n, status="RUN", **({{}} if ok else {{"failures": [1]}}))
         for n, ok in chosen.items()]
with open(options["gtest_output"][5:], "w") as file:
    json.dump({{"testsuites": [{{"name": "S", "testsuite": suite}}]}}, file)
sys.exit(0 if chosen and all(chosen.values()) else 1)
"""


class Judge(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.entry = {"name": "fault", "filter": "F", "passes_on": "P"}
        self.healthy = {"F": {"a": True, "b": True}, "P": {"c": True}}

    def stand_in(self, name, cases):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(STAND_IN.format(python=sys.executable, cases=repr(cases)))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def judge(self, suite, mutant):
        return judge.judge(self.entry, self.stand_in("suite", suite),
                           self.stand_in("mutant", mutant))

    def refused(self, suite, mutant, words):
        with self.assertRaisesRegex(judge.Verdict, words):
            self.judge(suite, mutant)

    def test_a_caught_fault_is_green_and_named(self):
        mutant = {"F": {"a": True, "b": False}, "P": {"c": True}}
        self.assertEqual(self.judge(self.healthy, mutant), ["S.b"])

    def test_an_unseen_fault_is_red(self):
        self.refused(self.healthy, self.healthy, "unseen")

    def test_a_crash_is_no_evidence(self):
        self.refused(self.healthy, {"F": "crash", "P": {"c": True}}, "crashed")

    def test_an_empty_filter_is_red(self):
        self.refused({}, {}, "no test matches")

    def test_a_suite_red_by_itself_is_no_evidence(self):
        self.refused({"F": {"a": False}}, {"F": {"a": False}}, "without the fault")

    def test_a_spared_test_that_fails_is_red(self):
        self.refused(self.healthy, {"F": {"a": False, "b": True}, "P": {"c": False}}, "passes_on")

    def test_a_spared_filter_without_tests_is_red(self):
        self.refused(self.healthy, {"F": {"a": False, "b": True}}, "passes_on")


class Patch(unittest.TestCase):
    def test_the_text_must_occur_exactly_once(self):
        entry = {"name": "fault", "file": "f.cc", "find": "x", "replace": "y"}
        self.assertEqual(patch.plant(entry, "a x b"), "a y b")
        for text in ("a b", "x x"):
            with self.assertRaises(ValueError):
                patch.plant(entry, text)

    def test_a_fault_must_change_something(self):
        with self.assertRaises(ValueError):
            patch.plant({"name": "n", "file": "f", "find": "x", "replace": "x"}, "x")


if __name__ == "__main__":
    unittest.main()
