# SPDX-License-Identifier: Apache-2.0
"""Which tests a change brought or touched, and what of the change is tests: from two commits' texts
and registries, before anything is built."""
import dataclasses
import os
import re

import cmake_text
import layout as layouts

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Case:
    """A test as its source or build file declares it, without instance and parameter."""
    name: str
    suite: str  # the target that holds it; nothing for one that is a command of its own
    file: str
    is_new: bool


class Side:
    """One commit: its tree as checked out, and what a configured build says of it."""

    def __init__(self, tree, registry, layout):
        self.registry = registry
        self.texts = {}  # of all sources of suites
        self.suites = {}  # {target: (what its tests' names begin with, labels)}
        self.cases = {}  # {suite: {source: [name]}}
        for folder, _, names in os.walk(tree.path):
            if layouts.BUILD_FILE in names:
                path = os.path.relpath(os.path.join(folder, layouts.BUILD_FILE), tree.path)
                self.suites.update(layout.suites(cmake_text.parse(tree.read(path))))
        for suite in registry.suites:
            prefix = self.prefix(suite)
            self.cases[suite] = {}
            for source in sorted(registry.targets[suite].sources):
                self.texts[source] = tree.read(source)
                self.cases[suite][source] = [prefix + name
                                             for name in layout.cases(self.texts[source])]
        for test in registry.tests.values():
            for token in test.command:
                if token.startswith(tree.path + os.sep):
                    path = os.path.relpath(token, tree.path)
                    if layout.is_named_test(path):
                        self.texts[path] = tree.read(path)

        self.reached = self._reached(tree, registry.sources_of(registry.product(layout.programs)))

    @staticmethod
    def _reached(tree, sources):
        """The headers of the tree that these sources include, and those that these do."""
        found, waiting = set(), list(sources)
        while waiting:
            for path in INCLUDE.findall(tree.read(waiting.pop())):
                if path not in found:
                    found.add(path)
                    waiting.append(path)
        return found

    def prefix(self, suite):
        return self.suites.get(suite, ("", set()))[0]

    def labels(self, case):
        if case.suite:
            return self.suites.get(case.suite, ("", set()))[1]
        return self.registry.tests[case.name].labels

    def names(self):
        named = {name for sources in self.cases.values() for names in sources.values()
                 for name in names}
        return named | set(self.registry.tests)


class Plan:
    def __init__(self, layout, tree_path, base, head, changes, only=None):
        self.layout = layout
        self.head = head
        self.files = [path for kind, path in changes
                      if kind != "D" and layout.is_test_file(path, head.registry, head.reached)]
        self.harness = [path for path in self.files_of(changes)
                        if layout.is_harness(path) and path not in self.files]
        self.build_files = [path for path in self.files_of(changes)
                            if os.path.basename(path) == layouts.BUILD_FILE]
        self.deleted = sorted(base.names() - head.names())
        self._tree_path = tree_path
        self._old_names = base.names()
        found = self._cases_of_suites() + self._cases_of_commands()
        self.unmapped = self._unmapped(found)
        wanted = [case for case in found if only is None or re.search(only, case.name) or
                  (case.suite and re.search(only, case.suite))]
        self.left_out = len(found) - len(wanted)
        self.cases, self.unjudged = [], {}
        for case in wanted:
            why = layout.why_not_judged(case.name, head.labels(case))
            if why:
                self.unjudged.setdefault(why, []).append(case)
            else:
                self.cases.append(case)

    @staticmethod
    def files_of(changes):
        return [path for kind, path in changes if kind != "D"]

    def _touched(self, source):
        """Whether a test's source, its header or data that it reads has changed."""
        header = os.path.splitext(source)[0] + ".h"
        if source in self.files or header in self.files:
            return True
        text = self.head.texts.get(source, "")
        return any(name in text for path in self.files if self.layout.is_data(path)
                   for name in self.layout.readers_look_for(path))

    def _cases_of_suites(self):
        found = []
        for suite, sources in sorted(self.head.cases.items()):
            # A changed source without cases, such as a reference, is behind all cases of its suite.
            whole = any(not names and source in self.files for source, names in sources.items())
            for source, names in sources.items():
                touched = whole or self._touched(source)
                found += [Case(name, suite, source, name not in self._old_names)
                          for name in names if touched or name not in self._old_names]
        return found

    def _cases_of_commands(self):
        """Tests that are a command: a script, a program with a folder of inputs."""
        found = []
        registry = self.head.registry
        for name, test in sorted(registry.tests.items()):
            is_new = name not in self._old_names
            files = [path for path in self.files if self._names(test, path)]
            for target in registry.needed_by(test) - registry.product(self.layout.programs):
                files += [path for path in self.files if path in registry.targets[target].sources]
            files += [source for source in self.head.texts
                      if self._names(test, source) and self._touched(source)]
            if is_new or files:
                found.append(Case(name, "", files[0] if files else layouts.BUILD_FILE, is_new))
        return found

    def _names(self, test, path):
        """Whether a command is given this file, or a folder that it lies in."""
        while path:
            if os.path.join(self._tree_path, path) in test.command:
                return True
            path = os.path.dirname(path)
        return False

    def _unmapped(self, found):
        """Changed files of tests that no test of this build is made from."""
        known = {case.file for case in found}
        return [path for path in self.files
                if self.layout.is_named_test(path) and path not in known]
