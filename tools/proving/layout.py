# SPDX-License-Identifier: Apache-2.0
"""What is a test in a project, told from its files' names, its folders and its targets; no git and
no builds in here. HALLMARK is this project; tests of the tool have one of their own."""
import dataclasses
import os
import re

import cmake_text

BUILD_FILE = "CMakeLists.txt"
CODE = (".cc", ".cu", ".h", ".cuh", ".inl")
HEADERS = (".h", ".cuh", ".inl")
MACRO = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\("
                   r"\s*(\w+),\s*(\w+)", re.MULTILINE)
# Inst/Suite.Case/parameter and Suite/0.Case
CASE = re.compile(r"^(?:\w+/)?([A-Za-z_]\w*)(?:/\w+)?\.(\w+)(?:/.*)?$")
SUITE_WORDS = ("AREA", "TIER", "NEED", "TIMEOUT", "SOURCES", "DEPS", "LABELS")
DECLARING = ("add_library", "add_executable", "add_custom_target")


@dataclasses.dataclass(frozen=True)
class Layout:
    programs: tuple  # targets: whatever they are linked with is no test
    test_names: str  # a regular expression of file names
    data: tuple = ()  # folders, with a slash, and files that tests are held against
    helpers: tuple = ()  # folders where a header that no program includes is a test's
    harness: tuple = ()  # folders that programs share with tests: laid only where a suite needs it
    suite: str = "add_suite"
    entries: tuple = ()  # commands that declare tests alone, besides add_test
    library: tuple = ()  # commands that declare a library, its target named with `prefix`
    prefix: str = ""
    switch: str = ""  # the variable without which no test is built
    always: tuple = ()  # (variable, value) of the build at BASE
    where: tuple = ()  # (expression of changed paths, variable, value): settings a change needs
    unjudged: tuple = ()  # (label, why): tests that are not run here
    unjudged_names: tuple = ()  # (expression, why)

    def is_named_test(self, path):
        return bool(re.search(self.test_names, os.path.basename(path)))

    def is_data(self, path):
        return any(path.startswith(item) if item.endswith("/") else path == item
                   for item in self.data)

    def is_harness(self, path):
        return path.startswith(self.harness) and not self.is_named_test(path)

    def may_matter(self, path):
        """False for a path that no test can be in, whatever is built."""
        return (self.is_named_test(path) or self.is_data(path) or path.endswith(CODE) or
                os.path.basename(path) == BUILD_FILE)

    def settings(self, paths):
        found = dict(self.always)
        for expression, variable, value in self.where:
            if any(re.search(expression, path) for path in paths):
                found[variable] = value
        return found

    def is_test_file(self, path, registry, reached):
        """`registry` is of the commit the file is from, `reached` what its programs include."""
        if os.path.basename(path) == BUILD_FILE:
            return False
        if self.is_named_test(path) or self.is_data(path):
            return True
        product = registry.sources_of(registry.product(self.programs))
        tests = registry.sources_of(set(registry.targets) - registry.product(self.programs))
        if path.endswith(HEADERS):
            stem, folder = os.path.splitext(path)[0], os.path.dirname(path)
            for sources, verdict in ((product, False), (tests, True)):
                if any(os.path.splitext(source)[0] == stem for source in sources):
                    return verdict
            return path not in reached and (
                path.startswith(self.helpers) or
                (any(os.path.dirname(source) == folder for source in tests) and
                 not any(os.path.dirname(source) == folder for source in product)))
        return path in tests and path not in product

    def is_test_node(self, registry, also=()):
        """Says of a command of a build file whether it is about tests alone; `registry` is of
        HEAD, `also` the targets that are laid although programs use them."""
        tests = (set(registry.targets) - registry.product(self.programs)) | set(also)

        def judge(node):
            first = node.args[0] if node.args else ""
            if node.is_block():
                if self.switch and node.name == "if" and node.args == [self.switch]:
                    return True
                inner = [child for child in node.children if child.name not in ("else", "elseif")]
                return bool(inner) and all(judge(child) for child in inner)
            if node.name in (self.suite, "add_test", "set_tests_properties") + self.entries:
                return True
            if node.name in self.library:
                return self.prefix + first in tests
            return (node.name in DECLARING or node.name.startswith("target_") or
                    node.name == "set_target_properties") and first in tests

        return judge

    def is_all_tests(self, nodes, is_test):
        """True of a build file that declares tests and nothing else: also what is no entry, such
        as a variable, then belongs to them."""
        declared = [node for node in cmake_text.commands(nodes)
                    if node.name in (self.suite,) + DECLARING + self.library]
        return bool(declared) and all(is_test(node) for node in declared)

    def suites(self, nodes):
        """{target: (what its tests' names begin with, labels)} of a build file's commands."""
        found = {}
        for node in cmake_text.commands(nodes):
            if node.name == self.suite and node.args:
                values, name = {}, ""
                for arg in node.args[1:]:
                    if arg in SUITE_WORDS:
                        name = arg
                    else:
                        values.setdefault(name, []).append(arg)
                tier, area = (" ".join(values.get(word, [])) for word in ("TIER", "AREA"))
                labels = {tier, *values.get("NEED", []), *values.get("LABELS", [])}
                found[node.args[0]] = (f"{tier}.{area}.", labels)
        return found

    def cases(self, text):
        return [f"{suite}.{case}" for suite, case in MACRO.findall(text)]

    def case_of(self, name, prefix):
        """The name without instance and parameter: prefix + Suite.Case."""
        match = CASE.match(name[len(prefix):]) if name.startswith(prefix) else None
        return f"{prefix}{match[1]}.{match[2]}" if match else name

    def readers_look_for(self, path):
        """What stands in the text of a test that reads this data."""
        for root in self.data:
            if root.endswith("/") and path.startswith(root):
                inner = path[len(root):]
                names = {path, inner, os.path.dirname(inner)}
                return {name for name in names if "/" in name}
        return {path}

    def why_not_judged(self, name, labels):
        for label, why in self.unjudged:
            if label in labels:
                return why
        for expression, why in self.unjudged_names:
            if re.search(expression, name):
                return why
        return None

    def excerpt(self, output, message):
        """One line about why a test failed."""
        lines = output.split("\n")
        for number, line in enumerate(lines):
            match = re.search(r"([^\s/]+:\d+): Failure$", line)
            if match:
                said = " ".join(text.strip() for text in lines[number + 1:number + 4])
                return f"{match[1]}: {said}".strip()[:160]
        for line in reversed(lines):
            if re.match(r"(?:\w+\.)*\w*(?:Error|Exception)\b", line):
                return line[:160]
        return message[:160]


HALLMARK = Layout(
    programs=("hallmark", "two_streams", "list_cases"),
    test_names=r"_(?:test|prop|bench|fuzz)\.(?:cc|cu|py)$",
    data=("golden/", "fuzz/", "receipts/published/", "docs/tolerances.json"),
    helpers=("conformance/",),
    harness=("conformance/harness/",),
    entries=("add_fuzz_target", "hallmark_lint", "hallmark_program_test", "hallmark_receipt_test"),
    library=("hallmark_library", "hallmark_kernels"),
    prefix="hallmark_",
    switch="HALLMARK_TESTS",
    # Planted faults show that tests see them, and say nothing of a change.
    always=(("HALLMARK_TESTS", "ON"), ("HALLMARK_CUDA", "OFF"), ("HALLMARK_MUTANTS", "OFF"),
            ("HALLMARK_FUZZ", "OFF")),
    where=((r"^(?:engine/backend/cuda/(?!kernels_test/)|conformance/cuda/|kernels/.*_test\.py)",
            "HALLMARK_CUDA", "ON"),
           (r"^conformance/mutants/.*_test\.py$", "HALLMARK_MUTANTS", "ON")),
    unjudged=(("gpu", "need a GPU"), ("vendor", "need a checkpoint"), ("bench", "measure speed"),
              ("mutant", "are planted faults"), ("nightly", "run at night")),
    unjudged_names=((r"^lint\.(?:tree\.(?!\w*_test$)|build\.|kernels\.static_contract$)",
                     "judge the tree, not what a program does"),))
