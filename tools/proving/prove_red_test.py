# SPDX-License-Identifier: Apache-2.0
"""tools/prove-red on small projects: each outcome, and that nothing of it stays behind."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(os.path.dirname(HERE), "prove-red")
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import cmake_text  # pylint: disable=wrong-import-position
import layout as layouts  # pylint: disable=wrong-import-position
import worktree  # pylint: disable=wrong-import-position

LOADER = importlib.machinery.SourceFileLoader("prove_red", TOOL)
SPEC = importlib.util.spec_from_loader(LOADER.name, LOADER)
tool = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(tool)

TOY = layouts.Layout(
    programs=("app",), test_names=r"_test\.(?:cc|py)$", data=("golden/",), harness=("harness/",),
    helpers=("harness/", "checks/"),
    library=("toy_library",), prefix="toy_", switch="TOY_TESTS",
    where=((r"^wide_test\.py$", "TOY_WIDE", "ON"),), unjudged=(("gpu", "need a GPU"),))

SCRIPTS = """cmake_minimum_required(VERSION 3.25)
project(toy NONE)
enable_testing()
add_custom_target(app ALL)
"""
ENTRY = """add_test(NAME unit.{0} COMMAND "%s" ${{CMAKE_CURRENT_SOURCE_DIR}}/{0}_test.py)
set_tests_properties(unit.{0} PROPERTIES TIMEOUT 60 LABELS "{1}")
""" % sys.executable
SCRIPT = """import os
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import app
assert {}, {}
"""

SUITES = """cmake_minimum_required(VERSION 3.25)
project(toy CXX)
enable_testing()
include(GoogleTest)
function(add_suite NAME)
  cmake_parse_arguments(ARG "" "AREA;TIER;NEED" "SOURCES;DEPS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS})
  gtest_discover_tests(${NAME} TEST_PREFIX "${ARG_TIER}.${ARG_AREA}.")
endfunction()
function(toy_library NAME)
  add_library(toy_${NAME} STATIC ${ARGN})
  add_library(toy::${NAME} ALIAS toy_${NAME})
endfunction()
"""
# What a suite needs of GoogleTest to be discovered and run, which compiles at once.
TINY = """#include <cstdio>
#include <cstring>
struct Tiny { const char* suite; const char* name; bool (*run)(); Tiny* next; };
inline Tiny* tiny = nullptr;
struct Join { explicit Join(Tiny* one) { one->next = tiny; tiny = one; } };
#define TEST(S, N) static bool S##N(); static Tiny t##S##N{#S, #N, S##N, nullptr}; \\
  static Join j##S##N(&t##S##N); static bool S##N()
int main(int argc, char** argv) {
  const char* filter = argc > 1 ? std::strchr(argv[1], '=') : nullptr;
  int failed = 0;
  for (Tiny* t = tiny; t != nullptr; t = t->next) {
    char name[200];
    std::snprintf(name, sizeof name, "%s.%s", t->suite, t->name);
    if (filter == nullptr) {
      std::printf("%s.\\n  %s\\n", t->suite, t->name);
    } else if (std::strcmp(filter + 1, name) == 0 && !t->run()) {
      std::printf("some_test.cc:7: Failure\\n  of %s\\n", name);
      failed = 1;
    }
  }
  return failed;
}
"""


def git(root, *arguments):
    return subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", "-c",
                           "init.defaultBranch=main", "-c", "commit.gpgsign=false", *arguments],
                          cwd=root, env=worktree.environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=True).stdout.decode()


def runs(pid):
    """Whether a process is there, and not merely its exit code that nobody has asked for."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Toy(unittest.TestCase):
    """A repository of its own, and the check that no run leaves anything in it or beside it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "toy")
        self.temporary = os.path.join(folder.name, "temporary")
        os.mkdir(self.temporary)
        change = mock.patch.dict(os.environ, {"TMPDIR": self.temporary})
        change.start()
        self.addCleanup(change.stop)
        before = tempfile.tempdir
        tempfile.tempdir = self.temporary
        self.addCleanup(setattr, tempfile, "tempdir", before)
        os.mkdir(self.root)
        git(self.root, "init", "-q")

    def put(self, **files):
        """Writes files; `a__b_py` is a/b.py, None takes one away."""
        for name, text in files.items():
            path = os.path.join(self.root, re.sub(r"_(py|cc|h|txt|json|md)$", r".\1",
                                                  name.replace("__", "/")))
            if text is None:
                os.remove(path)
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def commit(self, subject, **files):
        self.put(**files)
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", subject)

    def clean(self):
        self.assertEqual(len(git(self.root, "worktree", "list").splitlines()), 1)
        self.assertEqual(os.listdir(self.temporary), [])

    def prove(self, code, *arguments):
        """Runs the tool; returns what it printed."""
        output = io.StringIO()
        status = git(self.root, "status", "--porcelain")
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                found = tool.main(list(arguments), self.root, TOY)
            except SystemExit as end:
                found = end.code
        self.assertEqual(found, code, output.getvalue())
        self.clean()
        self.assertEqual(git(self.root, "status", "--porcelain"), status)
        return output.getvalue()


class Scripts(Toy):
    def setUp(self):
        super().setUp()
        self.commit("Start", CMakeLists_txt=SCRIPTS + ENTRY.format("old", "cpu"),
                    app_py="SUM = 3\n", old_test_py=SCRIPT.format("app.SUM > 0", "'no sum'"))

    def test_a_test_that_is_red_at_base_proves_the_change(self):
        self.commit("Sum", CMakeLists_txt=SCRIPTS + ENTRY.format("old", "cpu") +
                    ENTRY.format("sum", "cpu"), app_py="SUM = 4\n",
                    sum_test_py=SCRIPT.format("app.SUM == 4", "f'{app.SUM} of 4'"),
                    old_test_py=SCRIPT.format("app.SUM > 1", "'no sum'"))
        output = self.prove(0, "HEAD~1")
        self.assertIn('BASE is ', output)
        self.assertIn('"Start"', output)
        self.assertIn("RED unit.sum (new): AssertionError: 3 of 4\n", output)
        self.assertIn("PASSES THERE: 1 tests that BASE has too", output)
        self.assertIn("tested: of 2 new or changed tests 1 are red at BASE, 0 do not", output)
        output = self.prove(1, "HEAD~1", "--only", "unit.old")
        self.assertIn("not tested: of 1 new or changed tests 0 are red", output)
        output = self.prove(1, "HEAD~1", "--only", "elsewhere")
        self.assertIn("--only leaves out all 2 new and changed tests", output)

    def test_tests_that_all_pass_at_base_prove_nothing(self):
        self.commit("Sum", CMakeLists_txt=SCRIPTS + ENTRY.format("old", "cpu") +
                    ENTRY.format("sum", "cpu"), app_py="SUM = 4\n",
                    sum_test_py=SCRIPT.format("app.SUM >= 3", "''"))
        output = self.prove(1, "HEAD~1")
        self.assertIn("PASSES THERE, though new: unit.sum\n", output)
        self.assertIn("a change whose tests all pass on its base is not tested", output)

    def test_a_change_without_tests_is_not_tested(self):
        self.commit("Sum", app_py="SUM = 4\n")
        self.assertIn("not tested: no test is new or changed", self.prove(1, "HEAD~1"))
        self.assertIn("of 0 changed files", self.prove(1, "HEAD"))
        self.commit("Old", CMakeLists_txt=SCRIPTS + "# nothing\n", old_test_py=None)
        output = self.prove(1, "HEAD~1")
        self.assertIn("no test is new or changed; 1 are gone", output)

    def test_what_is_no_test_stays_as_it_is_at_base(self):
        # HEAD's build file would have the test pass.
        flag = "set(SUM 4)\n"
        self.commit("Sum", CMakeLists_txt=SCRIPTS + flag + ENTRY.format("old", "cpu") +
                    ENTRY.format("sum", "cpu").replace("_test.py)", "_test.py \"${SUM}\")"),
                    sum_test_py="import sys\nassert sys.argv[1] == '4', 'a sum'\n")
        self.assertIn("RED unit.sum (new): AssertionError: a sum\n", self.prove(0, "HEAD~1"))

    def test_data_that_a_test_names_is_part_of_it(self):
        reader = ("import os\nimport sys\nsys.dont_write_bytecode = True\n"
                  "root = os.path.dirname(os.path.abspath(__file__))\nsys.path.insert(0, root)\n"
                  "import app\nwith open(root + '/golden/sums/a.txt') as file:\n"
                  "    assert app.SUM == int(file.read()), 'another sum'\n")
        self.commit("Data", old_test_py=reader, golden__sums__a_txt="3", golden__sums__b_txt="")
        self.commit("Sum", app_py="SUM = 4\n", golden__sums__a_txt="4")
        self.assertIn("RED unit.old (in a changed file): AssertionError: another sum\n",
                      self.prove(0, "HEAD~1"))

    def test_only_tests_that_cannot_run_here_decide_nothing(self):
        self.commit("Sum", CMakeLists_txt=SCRIPTS + ENTRY.format("old", "cpu") +
                    ENTRY.format("sum", "conf;gpu"), sum_test_py=SCRIPT.format("False", "''"))
        output = self.prove(3, "HEAD~1")
        self.assertIn("not judged: 1 tests that need a GPU", output)
        # One that no build file names is no test yet.
        self.commit("Stray", stray_test_py=SCRIPT.format("False", "''"))
        self.assertIn("no test of this build is made from stray_test.py", self.prove(3, "HEAD~1"))

    def test_a_test_that_does_not_run_is_not_red(self):
        skips = ENTRY.format("sum", "cpu") + (
            "set_tests_properties(unit.sum PROPERTIES SKIP_RETURN_CODE 7)\n")
        self.commit("Sum", CMakeLists_txt=SCRIPTS + ENTRY.format("old", "cpu") + skips,
                    sum_test_py="raise SystemExit(7)\n")
        output = self.prove(3, "HEAD~1")
        self.assertIn("DOES NOT RUN unit.sum: ", output)
        self.assertIn("no test could run", output)

    def test_a_change_can_need_a_setting(self):
        wide = ENTRY.format("wide", "cpu")
        self.commit("Wide", CMakeLists_txt=SCRIPTS + f"if(TOY_WIDE)\n{wide}endif()\n" +
                    ENTRY.format("old", "cpu"), wide_test_py=SCRIPT.format("app.SUM == 4", "''"))
        self.assertIn("RED unit.wide (new)", self.prove(0, "HEAD~1"))

    def test_a_base_beside_head_stands_for_the_common_ancestor(self):
        git(self.root, "checkout", "-q", "-b", "side")
        self.commit("Sum", app_py="SUM = 4\n", old_test_py=SCRIPT.format("app.SUM == 4", "''"))
        git(self.root, "checkout", "-q", "main")
        self.commit("Later", app_py="SUM = 4\n", later_md="later\n")
        output = self.prove(0, "main", "--head", "side")
        self.assertIn("main is no ancestor of side", output)
        self.assertIn("RED unit.old (in a changed file)", output)
        git(self.root, "checkout", "-q", "--orphan", "alone")
        git(self.root, "commit", "-q", "-m", "Alone")
        self.assertIn("no common ancestor", self.prove(2, "main"))

    def test_the_working_tree_is_not_compared_and_that_is_said(self):
        self.commit("Sum", app_py="SUM = 4\n", old_test_py=SCRIPT.format("app.SUM > 2", "''"))
        self.put(old_test_py=SCRIPT.format("app.SUM == 4", "''"))
        output = self.prove(1, "HEAD~1")
        self.assertIn("the working tree has 1 changed files: they are not compared", output)

    def test_wrong_usage_is_told_apart(self):
        self.assertIn("absent: expected a commit", self.prove(2, "absent"))
        self.assertIn("--only (", self.prove(2, "HEAD", "--only", "("))
        self.assertIn("expected a build folder", self.prove(2, "HEAD", "--build", "absent"))
        self.assertIn("expected 1 or more", self.prove(2, "HEAD", "--jobs", "0"))
        self.prove(2)

    def test_what_is_missing_decides_nothing(self):
        with mock.patch.object(tool.shutil, "which", lambda name: None if name == "ninja" else "x"):
            self.assertIn("ninja not found", self.prove(3, "HEAD"))
        self.commit("Broken", CMakeLists_txt=SCRIPTS + "message(FATAL_ERROR no)\n")
        self.commit("Sum", old_test_py=SCRIPT.format("app.SUM == 4", "''"),
                    CMakeLists_txt=SCRIPTS + ENTRY.format("old", "cpu"))
        self.assertIn("BASE cannot be configured", self.prove(3, "HEAD~1"))

    def test_an_interruption_leaves_nothing_behind(self):
        pid = os.path.join(os.path.dirname(self.root), "pid")
        self.commit("Sleep", old_test_py="import os\nimport time\n"
                    f"with open({pid!r} + '.new', 'w') as file:\n    file.write(str(os.getpid()))\n"
                    f"os.rename({pid!r} + '.new', {pid!r})\ntime.sleep(50)\n")
        for kind in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([sys.executable, os.path.abspath(__file__), "--toy", self.root,
                                   "HEAD~1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  start_new_session=True) as process:
                limit = time.monotonic() + 40
                while not os.path.exists(pid) and time.monotonic() < limit:
                    time.sleep(0.05)
                self.assertTrue(os.path.exists(pid))
                process.send_signal(kind)
                output = process.communicate(timeout=40)[0].decode()
            self.assertEqual(process.returncode, 130, output)
            self.clean()
            with open(pid, encoding="utf-8") as file:
                sleeping = int(file.read())
            self.assertFalse(runs(sleeping))
            os.remove(pid)


def suite(name, area, sources, *deps):
    return (f"add_suite({name} AREA {area} TIER unit NEED cpu\n  SOURCES {' '.join(sources)}\n"
            f"  DEPS {' '.join(deps)})\n")


class Suites(Toy):
    BEFORE = "toy_library(sum sum.cc)\nadd_executable(app app.cc)\ntarget_link_libraries(app toy_sum)\n"

    def case(self, name, check, include="sum.h"):
        return f'#include "tiny.h"\n#include "{include}"\nTEST(Sum, {name}) {{ return {check}; }}\n'

    def setUp(self):
        super().setUp()
        self.commit("Start", CMakeLists_txt=SUITES + self.BEFORE +
                    suite("good", "sum", ["a_test.cc"], "toy::sum"), tiny_h=TINY,
                    sum_h="#pragma once\nint Sum();\n", sum_cc="int Sum() { return 3; }\n",
                    app_cc='#include "sum.h"\nint main() { return Sum(); }\n',
                    a_test_cc=self.case("IsPositive", "Sum() > 0"),
                    e_test_cc=self.case("IsKnown", "true"))

    def test_what_a_suite_is_made_of_besides_its_cases_is_part_of_it(self):
        with_reference = (suite("good", "sum", ["a_test.cc", "reference.cc"], "toy::sum") +
                          suite("known", "known", ["e_test.cc"], "toy::sum"))
        reads = self.case("IsReference", "Sum() == Reference() + OFFSET", "a_test.h")
        self.commit("Reference", CMakeLists_txt=SUITES + self.BEFORE + with_reference,
                    a_test_h='#include "sum.h"\nint Reference();\n#define OFFSET 0\n',
                    a_test_cc=reads, reference_cc="int Reference() { return 3; }\n")
        self.commit("Sum", sum_cc="int Sum() { return 4; }\n",
                    reference_cc="int Reference() { return 4; }\n")
        self.commit("Offset", sum_cc="int Sum() { return 5; }\n",
                    a_test_h='#include "sum.h"\nint Reference();\n#define OFFSET 1\n')
        for commit in ("HEAD~1", "HEAD"):
            output = self.prove(0, commit + "~1", "--head", commit)
            self.assertIn("RED unit.sum.Sum.IsReference (in a changed file)", output)
            self.assertIn("of 1 new or changed tests 1 are red", output)

    def test_each_suite_is_judged_by_itself(self):
        # Of the product: a new function, a new library. Of the tests: a new case and a new source
        # in a suite that is there, a suite that uses the function, one that is linked with the
        # library, one of a source that was there, a library of tests alone, a header of tests.
        self.commit(
            "Sum", sum_h='#pragma once\n#include "checks/used.h"\nint Sum();\nint More();\n',
            sum_cc="int Sum() { return 4; }\nint More() { return 5; }\n",
            most_cc="int Most() { return 6; }\n",
            CMakeLists_txt=SUITES + self.BEFORE + "toy_library(most most.cc)\n"
            "target_link_libraries(app toy_most)\ntoy_library(check check.cc)\n" +
            suite("good", "sum", ["a_test.cc", "only/b_test.cc"], "toy::sum", "toy::check") +
            suite("known", "known", ["e_test.cc"], "toy::sum") +
            suite("broken", "more", ["c_test.cc"], "toy::sum") +
            suite("shared", "shared", ["f_test.cc"], "toy::sum") +
            suite("apart", "most", ["d_test.cc"], "toy::most"),
            check_h="bool IsFour(int);\n", check_cc="bool IsFour(int x) { return x == 4; }\n",
            a_test_cc=self.case("IsPositive", "Sum() > 0") + "TEST(Sum, IsOdd) { return true; }\n",
            only__limit_h="#define LIMIT 1\n", checks__free_h="#define FREE 1\n",
            checks__used_h="#define USED 4\n",
            only__b_test_cc=TINY.split("int main", maxsplit=1)[0] + '#include "check.h"\n'
            '#include "only/limit.h"\n#include "checks/free.h"\n#include "sum.h"\n'
            "TEST(Sum, IsFour) { return LIMIT == FREE && IsFour(Sum()); }\n",
            f_test_cc=self.case("IsUsed", "Sum() == USED", "checks/used.h").replace(
                "TEST", '#include "sum.h"\nTEST'),
            c_test_cc=self.case("IsFive", "More() == 5"),
            d_test_cc=self.case("IsSix", "true").replace("Sum, ", "Most, "))
        output = self.prove(0, "HEAD~1")
        self.assertIn("RED unit.sum.Sum.IsFour (new): some_test.cc:7: of Sum.IsFour\n", output)
        self.assertRegex(output, r"DOES NOT BUILD broken \(1 tests, 1 of them new\): .*c_test.cc:3:.*More.*\n"
                         r"  unit\.more\.Sum\.IsFive\n")
        self.assertRegex(output, "BASE cannot be configured with apart of CMakeLists.txt: .*toy::most")
        self.assertRegex(output, r"DOES NOT BUILD apart \(1 tests, 1 of them new\): it is not there.*\n"
                         r"  unit\.most\.Most\.IsSix\n")
        self.assertIn("PASSES THERE, though new: unit.known.Sum.IsKnown\n", output)
        self.assertIn("PASSES THERE, though new: unit.sum.Sum.IsOdd\n", output)
        self.assertIn("PASSES THERE: 1 tests that BASE has too", output)
        # What the program includes stays BASE's, which has none.
        self.assertIn("DOES NOT BUILD shared (1 tests, 1 of them new): ", output)
        self.assertIn("of 7 new or changed tests 1 are red at BASE, 3 do not build there, 3 pass",
                      output)
        self.assertNotIn("configuring with most", output)
        # A suite alone that does not build is red too.
        output = self.prove(0, "HEAD~1", "--only", r"^unit\.more\.")
        self.assertIn("tested, though nothing was compared: of 1 new or changed tests 0 are red at "
                      "BASE, 1 do not build there", output)
        self.assertIn("building broken\n", output)

    def test_the_harness_is_laid_only_where_a_suite_needs_it(self):
        used = "toy_library(harness harness/ruler.cc)\ntarget_link_libraries(app toy_harness)\n"
        entries = (suite("ruler", "harness", ["harness/ruler_test.cc"], "toy::harness") +
                   suite("good", "sum", ["a_test.cc"], "toy::sum", "toy::harness"))
        self.commit("Harness", CMakeLists_txt=SUITES + self.BEFORE + used + entries,
                    harness__ruler_h="bool IsThree(int);\n",
                    harness__ruler_cc="bool IsThree(int x) { return x > 0; }\n",
                    harness__ruler_test_cc=self.case("Once", "true", "harness/ruler.h"))
        self.commit("Stricter", harness__ruler_cc="bool IsThree(int x) { return x == 3; }\n"
                    "bool IsFour(int x) { return x == 4; }\n",
                    harness__ruler_h="bool IsThree(int);\nbool IsFour(int);\n",
                    harness__ruler_test_cc=self.case("Strict", "!IsThree(1)", "harness/ruler.h"),
                    a_test_cc=self.case("IsFour", "IsFour(Sum())").replace(
                        '#include "sum.h"', '#include "sum.h"\n#include "harness/ruler.h"'),
                    sum_cc="int Sum() { return 4; }\n")
        output = self.prove(0, "HEAD~1")
        self.assertIn("RED unit.harness.Sum.Strict (new): ", output)
        self.assertIn("RED unit.sum.Sum.IsFour (new, with the harness of HEAD): ", output)
        self.assertIn("of 2 new or changed tests 2 are red at BASE, 0 do not build", output)
        # With HEAD's harness its own test would pass and show nothing.
        self.commit("Five", harness__ruler_cc="bool IsThree(int x) { return x == 3; }\n"
                    "bool IsFour(int x) { return x == 4; }\nbool IsFive(int x) { return x == 5; }\n",
                    harness__ruler_h="bool IsThree(int);\nbool IsFour(int);\nbool IsFive(int);\n",
                    harness__ruler_test_cc=self.case("Five", "IsFive(5)", "harness/ruler.h"))
        output = self.prove(0, "HEAD~1")
        self.assertIn("DOES NOT BUILD ruler (1 tests, 1 of them new): ", output)


class BuildFiles(unittest.TestCase):
    """One build file of two."""

    BASE = ("hallmark_library(a SOURCES a.cc)\n\n# Of a.\nadd_suite(a_tests SOURCES a_test.cc)\n"
            "if(HAS_X)\n  add_subdirectory(x)\nendif()\nadd_suite(gone SOURCES gone_test.cc)\n")
    HEAD = ("hallmark_library(a SOURCES a.cc new.cc)  # two (of them\n"
            "hallmark_library(b SOURCES [[b c.cc]])\n"
            "# Of a.\nadd_suite(a_tests SOURCES a_test.cc new_test.cc)\n"
            "if(HAS_X)\n  add_suite(x_tests SOURCES x_test.cc)\n  add_subdirectory(y)\nendif()\n"
            "add_suite(b_tests SOURCES \"b_test.cc\")\n")

    @staticmethod
    def is_test(node):
        return node.name == "add_suite"

    def both(self):
        return cmake_text.parse(self.BASE), cmake_text.parse(self.HEAD)

    def test_entries_of_tests_come_from_head_and_all_else_from_base(self):
        base, head = self.both()
        entries = cmake_text.differing(base, head, self.is_test)
        self.assertEqual([entry[-1][1] for entry in entries],
                         ["a_tests", "x_tests", "b_tests", "gone"])
        self.assertEqual(
            cmake_text.merged(base, head, self.is_test, set(entries)).split("\n"),
            ["hallmark_library(a SOURCES a.cc)", "# Of a.",
             "add_suite(a_tests SOURCES a_test.cc new_test.cc)", "if(HAS_X)",
             "  add_suite(x_tests SOURCES x_test.cc)", "  add_subdirectory(x)", "endif()",
             'add_suite(b_tests SOURCES "b_test.cc")'])

    def test_what_is_not_laid_stays(self):
        base, head = self.both()
        self.assertEqual(cmake_text.merged(base, head, self.is_test, set()) + "\n", self.BASE)
        one = (("add_suite", "b_tests", 1),)
        self.assertEqual(cmake_text.merged(base, head, self.is_test, {one}).split("\n")[-2:],
                         ['add_suite(b_tests SOURCES "b_test.cc")',
                          "add_suite(gone SOURCES gone_test.cc)"])

    def test_what_is_no_build_file_is_refused(self):
        for text in ("add_suite(a", "add_suite)", "if(A)\n", '"a"', 'a("b)'):
            with self.assertRaises(ValueError):
                cmake_text.parse(text)

    def test_every_build_file_of_the_tree_is_read_whole(self):
        root = os.path.dirname(os.path.dirname(HERE))
        suites = {}
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in ("build", ".git")]
            if "CMakeLists.txt" in names:
                with open(os.path.join(folder, "CMakeLists.txt"), encoding="utf-8") as file:
                    text = file.read()
                nodes = cmake_text.parse(text)
                self.assertTrue(text.startswith("".join(node.whole() for node in nodes)), folder)
                suites.update(layouts.HALLMARK.suites(nodes))
        self.assertGreater(len(suites), 50)
        self.assertEqual(suites["base_tests"], ("unit.base.", {"unit", "cpu", "L0"}))


class Names(unittest.TestCase):
    def test_a_case_is_the_same_with_instance_and_parameter(self):
        for name in ("A.B", "Inst/A.B/param", "Inst/A.B/x.y/z", "A/0.B"):
            self.assertEqual(TOY.case_of("unit.sum." + name, "unit.sum."), "unit.sum.A.B", name)
        self.assertEqual(TOY.case_of("conf.script", "unit.sum."), "conf.script")

    def test_cases_of_every_macro_are_found(self):
        text = "TEST(A, B) {\nTEST_P(C,\n       D) {\nRC_GTEST_PROP(E, F, (int x)) {\n// TEST(G, H)\n"
        self.assertEqual(TOY.cases(text), ["A.B", "C.D", "E.F"])

    def test_what_needs_what_is_told_from_labels_and_names(self):
        why = layouts.HALLMARK.why_not_judged
        self.assertEqual(why("conf.gpu.A.B", {"conf", "gpu"}), "need a GPU")
        self.assertIsNone(why("lint.tree.lint_test", {"lint", "cpu"}))
        self.assertIn("judge the tree", why("lint.tree.words", {"lint", "cpu"}))
        settings = layouts.HALLMARK.settings
        self.assertEqual(settings(["engine/base/json_test.cc"])["HALLMARK_CUDA"], "OFF")
        self.assertEqual(settings(["engine/backend/cuda/arena_test.cc"])["HALLMARK_CUDA"], "ON")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--toy"]:
        sys.exit(tool.main(sys.argv[3:], sys.argv[2], TOY))
    unittest.main()
