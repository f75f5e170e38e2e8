# SPDX-License-Identifier: Apache-2.0
"""Every ctest has one tier, one need, known labels and a timeout; every suite has a test."""
import json
import os
import subprocess

TIERS = {"unit", "prop", "conf", "fuzz", "receipt", "bench", "lint"}
NEEDS = {"cpu", "gpu"}
OTHERS = {"smoke", "slow", "nightly", "needs-model", "vendor", "mutant", "L0", "L1", "L2", "L3",
          "sm86", "sm121"}


def properties(test):
    return {item["name"]: item["value"] for item in test.get("properties", [])}


def check_tests(tests, suites):
    """`tests` as in `ctest --show-only=json-v1`, `suites` the executables add_suite made."""
    problems, with_tests = [], set()
    for test in tests:
        name, values = test["name"], properties(test)
        if name.endswith("_NOT_BUILT") or "command" not in test:
            problems.append(f"{name}: is not built")
            continue
        with_tests.add(os.path.basename(test["command"][0]))
        labels = set(values.get("LABELS", []))
        for kind, known in (("tier", TIERS), ("need", NEEDS)):
            found = sorted(labels & known)
            if len(found) != 1:
                problems.append(f"{name}: {kind} labels {found}, expected exactly one of {sorted(known)}")
        unknown = labels - TIERS - NEEDS - OTHERS
        if unknown:
            problems.append(f"{name}: unknown labels {sorted(unknown)}")
        if "TIMEOUT" not in values:
            problems.append(f"{name}: has no TIMEOUT")
        if values.get("DISABLED"):
            problems.append(f"{name}: is disabled, which ctest takes for green")
        tier = labels & TIERS
        if tier and name.split(".")[0] not in tier:
            problems.append(f"{name}: the name must start with its tier {sorted(tier)}")
    for suite in suites:
        if suite not in with_tests:
            problems.append(f"{suite}: an empty suite: it registers no test")
    if not tests:
        problems.append("there is no test at all")
    return problems


def check(build, suites):
    done = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, stdout=subprocess.PIPE,
                          check=True)
    return check_tests(json.loads(done.stdout)["tests"], suites)
