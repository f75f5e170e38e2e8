# SPDX-License-Identifier: Apache-2.0
"""BASE with the tests of HEAD laid over it: configured, built as far as it can be, and run."""
import dataclasses
import os
import re
import xml.etree.ElementTree

import cmake_text
import registry as registries
import worktree

RED, PASS, NOT_BUILT, NOT_RUN = "red", "pass", "not built", "not run"


@dataclasses.dataclass(frozen=True)
class Outcome:
    verdict: str
    why: str = ""
    harness: bool = False  # built with HEAD's harness


class Build:
    """One build folder, beside the source."""

    def __init__(self, tree, jobs, settings, borrowed):
        self.source = tree.path
        self.folder = os.path.join(os.path.dirname(tree.path), "build")
        self.jobs = str(jobs)
        self.settings = [f"-D{name}={value}" for name, value in {**borrowed, **settings}.items()]
        self.environment = worktree.environment()
        # Objects of another run are found although the folder has another name.
        self.environment.update(CCACHE_BASEDIR=os.path.dirname(tree.path), CCACHE_NOHASHDIR="1")

    def run(self, *command, cwd=None):
        return worktree.run(list(command), cwd or self.source, self.environment)

    def configure(self):
        """Returns (registry or None, output)."""
        registries.ask(self.folder)
        code, output = self.run("cmake", "-S", self.source, "-B", self.folder, "-G", "Ninja",
                                *self.settings)
        return (registries.read(self.folder) if code == 0 else None), output

    def build(self, targets):
        """Builds what can be built; returns {target: first error} of the rest."""
        names = sorted(targets)
        code, output = self.run("cmake", "--build", self.folder, "-j", self.jobs, "--target",
                                *names, "--", "-k", "0")
        failed = {}
        for name in names if code else []:
            code, output = self.run("cmake", "--build", self.folder, "-j", self.jobs, "--target",
                                    name)
            if code:
                failed[name] = first_error(output, self.source)
        return failed

    def test(self, numbers):
        """Runs the tests of these places in ctest's list, one at a time; returns {name: (status,
        message, output)}."""
        listed, report = (os.path.join(self.folder, name) for name in ("numbers", "junit.xml"))
        with open(listed, "w", encoding="utf-8") as file:
            file.write("0,0,0," + ",".join(str(number + 1) for number in numbers) + "\n")
        if os.path.exists(report):
            os.remove(report)
        _, output = self.run("ctest", "-I", listed, "--output-junit", report, cwd=self.folder)
        if not os.path.exists(report):
            raise worktree.Undecided("ctest left no results\n" + output[-500:])
        found = {}
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            said = case.find("failure")
            said = case.find("skipped") if said is None else said
            found[case.get("name")] = (case.get("status"),
                                       said.get("message", "") if said is not None else "",
                                       case.findtext("system-out") or "")
        return found


def first_error(output, source):
    """The line that says what is wrong; of CMake, whose first line says where, a few more."""
    lines = [line.replace(source + os.sep, "").replace("../source/", "").strip()
             for line in output.split("\n") if line.strip()]
    for number, line in enumerate(lines):
        if line.startswith("CMake Error"):
            return " ".join(lines[number:number + 4])[:240]
        if re.search(r"\b(?:error|undefined reference)\b", line, re.IGNORECASE):
            return line[:160]
    return lines[-1][:160] if lines else ""


class Trial:
    def __init__(self, repository, tree, build, layout, plan, base, head, say):
        self.repository, self.tree, self.build = repository, tree, build
        self.layout, self.plan, self.base, self.head, self.say = layout, plan, base, head, say
        self.registry = None
        self.without = []  # entries of build files that BASE cannot be configured with
        self.outcomes = {}  # {name of ctest: (Case, Outcome)}

    def run(self):
        self.tree.check_out(self.base)
        self.tree.lay(self.head, self.plan.files)
        self._configure(())
        failed = self._judge(self.plan.cases, False)
        # Tests of the harness itself are held against BASE's; others may need what it has learnt.
        again = [case for case in self.plan.cases
                 if case.suite in failed and not case.file.startswith(self.layout.harness)]
        if again and self.plan.harness:
            self.say(f"{len(failed)} do not build; once more with HEAD's harness: "
                     f"{', '.join(self.plan.harness)}")
            self.tree.lay(self.head, self.plan.harness)
            product = self.plan.head.registry.targets
            shared = {name for name, target in product.items()
                      if target.sources & set(self.plan.harness)}
            self._configure(shared)
            self.outcomes = {name: (case, outcome) for name, (case, outcome) in
                             self.outcomes.items() if case not in again}
            self._judge(again, True)
        return self.outcomes

    # Build files.

    def _texts(self, shared):
        """{path: (BASE's commands, HEAD's, what is a test entry)} of changed build files."""
        found = {}
        is_entry = self.layout.is_test_node(self.plan.head.registry, shared)
        old = {path: self.repository.text(self.base, path) for path in self.plan.build_files}
        for path in self.plan.build_files:
            head = cmake_text.parse(self.repository.text(self.head, path))
            folder = os.path.dirname(path)

            def is_test(node, folder=folder):
                inner = os.path.join(folder, node.args[0] if node.args else "", "CMakeLists.txt")
                return is_entry(node) or (node.name == "add_subdirectory" and
                                          old.get(inner, "") is None)

            whole = self.layout.is_all_tests(head, is_test)
            found[path] = (cmake_text.parse(old[path] or ""), head,
                           (lambda node: True) if whole else is_test)
        return found

    def _configure(self, shared):
        texts = self._texts(shared)
        entries = [(path, entry) for path, (base, head, is_test) in texts.items()
                   for entry in cmake_text.differing(base, head, is_test)]
        self.say(f"laid over BASE: {len(self.plan.files)} files, {len(entries)} entries of build "
                 "files; configuring")
        if self._try(texts, entries):
            return
        laid = []
        if not self._try(texts, laid):
            raise worktree.Undecided("BASE cannot be configured with the files of HEAD's tests:\n" +
                                     self._said[-800:])
        for entry in entries:
            self.say(f"configuring with {entry[1][-1][1]} of {entry[0]}")
            if self._try(texts, laid + [entry]):
                laid.append(entry)
            else:
                self.without.append((entry, first_error(self._said, self.tree.path)))
        self._try(texts, laid)

    def _try(self, texts, entries):
        for path, (base, head, is_test) in texts.items():
            laid = {entry for other, entry in entries if other == path}
            text = cmake_text.merged(base, head, is_test, laid)
            if text or base:
                self.tree.write(path, text)
        registry, self._said = self.build.configure()
        self.registry = registry or self.registry
        return registry is not None

    # Suites.

    def _judge(self, cases, harness):
        """Builds and runs what holds these cases; returns the targets that do not build."""
        targets, absent = set(), set()
        for case in cases:
            if case.suite:
                (targets if case.suite in self.registry.suites else absent).add(case.suite)
            elif case.name in self.registry.tests:
                targets |= self.registry.needed_by(self.registry.tests[case.name])
        self.say(f"building {', '.join(sorted(targets)) or 'nothing'}")
        failed = self.build.build(targets) if targets else {}
        built = registries.tests_of_build(self.build.folder)
        places = self._places(built, cases)
        broken = {number: failed[target] for number, case in places.items() if not case.suite
                  for target in self.registry.needed_by(self.registry.tests[case.name])
                  if target in failed}
        running = [number for number in places if number not in broken]
        self.say(f"running {len(running)} tests")
        results = self.build.test(running) if running else {}
        reached = set()
        for number, case in places.items():
            name = built[number].name
            reached.add(case)
            self.outcomes[name] = (case, self._outcome(results.get(name), broken.get(number),
                                                       harness))
        for case in cases:
            if case not in reached:
                why = failed.get(case.suite, "it is not there: its entry does not fit BASE")
                self.outcomes[case.name] = (case, Outcome(NOT_BUILT, why, harness))
        return set(failed) | absent

    def _places(self, built, cases):
        """{place in ctest's list: Case}."""
        alone = {case.name: case for case in cases if not case.suite}
        held = {(case.suite, case.name): case for case in cases if case.suite}
        found = {}
        for number, test in enumerate(built):
            if test.name in alone:
                found[number] = alone[test.name]
                continue
            for suite in self.registry.suites & {case.suite for case in cases}:
                if test.command[:1] == self.registry.targets[suite].artifacts[:1]:
                    name = self.layout.case_of(test.name, self.plan.head.prefix(suite))
                    if (suite, name) in held:
                        found[number] = held[suite, name]
        return found

    def _outcome(self, result, broken, harness):
        if broken is not None:
            return Outcome(NOT_BUILT, broken, harness)
        status, message, output = result or ("notrun", "ctest did not run it", "")
        if status == "run":
            return Outcome(PASS, "", harness)
        if status == "fail":
            return Outcome(RED, self.layout.excerpt(output, message), harness)
        return Outcome(NOT_RUN, message, harness)
