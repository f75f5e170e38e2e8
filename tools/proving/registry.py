# SPDX-License-Identifier: Apache-2.0
"""What a configured build folder knows: its targets with their sources (CMake's file API) and its
tests (CTestTestfile.cmake), before anything is built; and the tests of what was built."""
import dataclasses
import glob
import json
import os
import re
import subprocess

import cmake_text

QUERY = ".cmake/api/v1/query/codemodel-v2"
DISCOVERED = re.compile(r"([^/]+?)(?:\[\d+\])?_include(?:-\w+)?\.cmake$")


@dataclasses.dataclass
class Target:
    sources: set
    artifacts: list
    depends: set


@dataclasses.dataclass
class Test:
    name: str
    command: list
    labels: set = dataclasses.field(default_factory=set)
    environment: list = dataclasses.field(default_factory=list)

    def names_path(self, path):
        """Whether the command or its environment names this file or folder."""
        return any(path in re.split(r"[=;,]", token) for token in self.command + self.environment)


@dataclasses.dataclass
class Registry:
    targets: dict  # {name: Target}
    tests: dict  # {name: Test}: those whose names are known before a build
    suites: set  # targets whose tests are found out by running them

    def product(self, programs):
        """The programs and every target they are linked with."""
        found, waiting = set(), [name for name in programs if name in self.targets]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.targets[name].depends
        return found

    def sources_of(self, names):
        return set().union(*(self.targets[name].sources for name in names))

    def needed_by(self, test):
        """The targets that a test's command or its environment names."""
        return {name for name, target in self.targets.items()
                if any(test.names_path(path) for path in target.artifacts)}


def ask(build):
    """Must be called before the folder is configured, for `read` to find an answer."""
    path = os.path.join(build, QUERY)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8"):
        pass


def _load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _targets(build):
    reply = os.path.join(build, ".cmake/api/v1/reply")
    index = _load(max(glob.glob(os.path.join(reply, "index-*.json"))))
    model = next(item["jsonFile"] for item in index["objects"] if item["kind"] == "codemodel")
    listed = _load(os.path.join(reply, model))["configurations"][0]["targets"]
    names = {item["id"]: item["name"] for item in listed}
    found = {}
    for item in listed:
        target = _load(os.path.join(reply, item["jsonFile"]))
        found[item["name"]] = Target(
            {source["path"] for source in target.get("sources", [])},
            [os.path.join(build, artifact["path"]) for artifact in target.get("artifacts", [])],
            {names[other["id"]] for other in target.get("dependencies", []) if other["id"] in names})
    return found


def _values(args, known):
    """A command's arguments "NAME value..." as {NAME: [value...]}."""
    found, name = {}, None
    for arg in args:
        if arg in known:
            name = arg
            found[name] = []
        elif name:
            found[name].append(arg)
    return found


def _read_tests(folder, tests, suites):
    path = os.path.join(folder, "CTestTestfile.cmake")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        nodes = cmake_text.parse(file.read())
    for node in cmake_text.commands(nodes):
        if node.name == "add_test":
            tests[node.args[0]] = Test(node.args[0], node.args[1:])
        elif node.name == "set_tests_properties" and node.args[0] in tests:
            test = tests[node.args[0]]
            values = _values(node.args[1:], ("LABELS", "ENVIRONMENT", "TIMEOUT", "RESOURCE_LOCK",
                                             "_BACKTRACE_TRIPLES", "WORKING_DIRECTORY"))
            test.labels.update(";".join(values.get("LABELS", [])).split(";"))
            test.environment += values.get("ENVIRONMENT", [])
        elif node.name == "include" and (match := DISCOVERED.search(node.args[0])):
            suites.add(match[1])
        elif node.name == "subdirs":
            _read_tests(os.path.join(folder, node.args[0]), tests, suites)


def read(build):
    tests, suites = {}, set()
    _read_tests(build, tests, suites)
    targets = _targets(build)
    return Registry(targets, tests, suites & set(targets))


def tests_of_build(build):
    """Every test as ctest lists it, in its order, so that a test's number is its place."""
    done = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, stdout=subprocess.PIPE,
                          check=True)
    found = []
    for test in json.loads(done.stdout)["tests"]:
        values = {item["name"]: item["value"] for item in test.get("properties", [])}
        found.append(Test(test["name"], test.get("command", []), set(values.get("LABELS", [])),
                          values.get("ENVIRONMENT", [])))
    return found
