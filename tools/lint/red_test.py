# SPDX-License-Identifier: Apache-2.0
"""Shows that a skip and an empty suite turn a ctest run red.

Usage: red_test.py SKIPPING_SUITE EMPTY_SUITE. Writes a small ctest folder that runs each as
gtest_discover_tests would, skip pattern included, and demands that ctest fails them.
"""
import os
import subprocess
import sys
import tempfile

# What gtest_discover_tests adds to every case: ctest takes these words for "not run", which is green.
SKIP = r"\\[  SKIPPED \\]"


def ctest(suite, case):
    """Runs one case under ctest; returns (exit code, output)."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
            file.write(f'add_test(t "{suite}" "--gtest_filter={case}")\n'
                       f'set_tests_properties(t PROPERTIES SKIP_REGULAR_EXPRESSION "{SKIP}")\n')
        done = subprocess.run(["ctest", "--output-on-failure"], cwd=folder, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.decode()


def main(skipping, empty):
    wrong = []
    for suite, case, red, words in (
            (skipping, "SkippingSuite.Passes", False, "Passed"),
            (skipping, "SkippingSuite.Skips", True, "a skip is a failure here"),
            (skipping, "NoSuchSuite.*", True, "an empty suite is a failure here"),
            (empty, "*", True, "an empty suite is a failure here")):
        code, output = ctest(suite, case)
        if (code != 0) != red or words not in output:
            wrong.append(f"{os.path.basename(suite)} {case}: exit {code}\n{output}")
    print("\n".join(wrong) or "a skip and an empty suite are red")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
