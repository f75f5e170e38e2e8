# SPDX-License-Identifier: Apache-2.0
"""Demands that a suite turns red for one planted fault, and only for it.

Usage: judge.py ENTRY.json SUITE MUTANT RESULT.json. Green when
  1. the suite without the fault passes the entry's filter, with at least one test;
  2. the same tests with the fault end with failed assertions (no crash, no missing test);
  3. the tests of `passes_on`, if given, stay green with the fault.
RESULT.json then names the tests that caught the fault; tools/mutants-report reads it.
"""
import json
import os
import subprocess
import sys
import tempfile


class Verdict(Exception):
    """The fault was not shown red as it must be."""


def run(executable, test_filter):
    """Runs a gtest executable; returns (exit code, names run, names failed, output tail)."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        process = subprocess.run(
            [executable, f"--gtest_filter={test_filter}", f"--gtest_output=json:{report}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        ran, failed = [], []
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                for suite in json.load(file)["testsuites"]:
                    for case in suite["testsuite"]:
                        if case["status"] != "RUN":
                            continue
                        name = f'{suite["name"]}.{case["name"]}'
                        ran.append(name)
                        if case.get("failures"):
                            failed.append(name)
        tail = process.stdout.decode(errors="replace")[-2000:]
        return process.returncode, ran, failed, tail


def judge(entry, suite, mutant):
    """Returns the names of the tests that caught the fault; raises Verdict otherwise."""
    name, test_filter = entry["name"], entry["filter"]
    code, ran, failed, tail = run(suite, test_filter)
    if not ran:
        raise Verdict(f"{name}: no test matches the filter {test_filter}\n{tail}")
    if code != 0 or failed:
        raise Verdict(f"{name}: the suite is red without the fault: {failed}\n{tail}")
    code, mutant_ran, failed, tail = run(mutant, test_filter)
    if code < 0 or not mutant_ran:
        raise Verdict(f"{name}: with the fault the suite crashed (exit {code}): not evidence\n{tail}")
    if mutant_ran != ran:
        raise Verdict(f"{name}: with the fault other tests ran: {mutant_ran} instead of {ran}")
    if code == 0 or not failed:
        raise Verdict(f"{name}: the fault went unseen by {len(ran)} tests of {test_filter}")
    spared = entry.get("passes_on")
    if spared:
        code, mutant_ran, spoilt, tail = run(mutant, spared)
        if not mutant_ran:
            raise Verdict(f"{name}: no test matches passes_on {spared}")
        if code != 0 or spoilt:
            raise Verdict(f"{name}: passes_on {spared} is red too: {spoilt}\n{tail}")
    return failed


def main(entry_path, suite, mutant, result_path):
    with open(entry_path, encoding="utf-8") as file:
        entry = json.load(file)
    try:
        caught_by = judge(entry, suite, mutant)
    except Verdict as verdict:
        print(verdict, file=sys.stderr)
        return 1
    os.makedirs(os.path.dirname(result_path), exist_ok=True)
    with open(result_path, "w", encoding="utf-8") as file:
        json.dump({"name": entry["name"], "caught_by": caught_by}, file, indent=2, sort_keys=True)
        file.write("\n")
    print(f'{entry["name"]}: caught by {", ".join(caught_by)}')
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
