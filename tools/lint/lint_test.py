# SPDX-License-Identifier: Apache-2.0
"""Every lint is shown red for the fault it exists to see, and green without it."""
import importlib.machinery
import importlib.util
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atomics  # pylint: disable=wrong-import-position
import clauses  # pylint: disable=wrong-import-position
import documents  # pylint: disable=wrong-import-position
import files  # pylint: disable=wrong-import-position
import formatting  # pylint: disable=wrong-import-position
import labels  # pylint: disable=wrong-import-position
import layers  # pylint: disable=wrong-import-position

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class TreeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def put(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def put_json(self, path, value):
        self.put(path, documents.canonical(value))

    def red(self, problems, words):
        self.assertEqual(len(problems), 1, problems)
        self.assertRegex(problems[0], words)


class Layers(TreeTest):
    def setUp(self):
        super().setUp()
        self.put("engine/base/a.h", "")
        self.put("engine/run/b.h", "")
        self.put("conformance/harness/c.h", "")

    def test_downward_and_own_includes_are_clean(self):
        self.put("engine/run/b.cc", '#include "engine/base/a.h"\n#include "engine/run/b.h"\n')
        self.assertEqual(layers.check(self.root), [])

    def test_an_upward_include_is_red(self):
        self.put("engine/base/a.cc", '#include "engine/run/b.h"\n')
        self.red(layers.check(self.root), "engine/base may not include engine/run")

    def test_only_tests_may_include_the_harness(self):
        self.put("engine/base/a_test.cc", '#include "conformance/harness/c.h"\n')
        self.assertEqual(layers.check(self.root), [])
        self.put("engine/base/a.cc", '#include "conformance/harness/c.h"\n')
        self.red(layers.check(self.root), "may not include conformance")

    def test_a_relative_include_is_red(self):
        self.put("engine/base/a.cc", '#include "a.h"\n')
        self.red(layers.check(self.root), "no file of the tree")

    def test_a_heavy_include_in_a_header_is_red(self):
        self.put("engine/base/d.h", "#include <nlohmann/json.hpp>\n")
        self.red(layers.check(self.root), "only .cc files may")
        self.put("engine/base/d.h", "#include <nlohmann/json_fwd.hpp>\n")
        self.assertEqual(layers.check(self.root), [])

    def test_a_file_outside_all_layers_is_red(self):
        self.put("extra/e.cc", "")
        self.red(layers.check(self.root), "lies in no layer")


class Files(TreeTest):
    def test_length_limit_and_remark(self):
        self.put("engine/base/a.cc", "\n" * 500)
        self.assertEqual(files.check_length(self.root), ([], []))
        self.put("engine/base/a.cc", "\n" * 600)
        problems, remarks = files.check_length(self.root)
        self.assertEqual((problems, len(remarks)), ([], 1))
        self.put("engine/base/a.cc", "\n" * 601)
        self.red(files.check_length(self.root)[0], "601 lines")

    def test_a_missing_licence_line_is_red(self):
        self.put("engine/base/a.cc", SPDX)
        self.put("tools/t", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n")
        self.assertEqual(files.check_licence(self.root), [])
        self.put("engine/base/b.h", "#ifndef B\n" + SPDX)
        self.red(files.check_licence(self.root), "b.h")

    def test_paths_of_one_machine_are_red(self):
        for folder in ("ho" + "me", "t" + "mp", "wo" + "rk"):
            self.put("docs/a.md", f"see /{folder}/me\n")
            self.red(files.check_words(self.root), "path of one machine")
        self.put("docs/a.md", "see $root/usr and build/tmp/x, /usr/bin\n")
        self.assertEqual(files.check_words(self.root), [])

    def test_notes_to_self_are_red(self):
        self.put("engine/base/a.cc", "// TO" + "DO: later\n")
        self.red(files.check_words(self.root), "note to self")


class Formatting(TreeTest):
    def test_an_unformatted_file_is_red(self):
        self.put(".clang-format", "BasedOnStyle: Google\n")
        self.put("engine/base/a.cc", "int a = 1;\n")
        self.assertEqual(formatting.check(self.root), [])
        self.put("engine/base/a.cc", "int  a=1 ;\n")
        self.assertTrue(formatting.check(self.root))

    def test_no_file_or_no_program_is_red(self):
        self.red(formatting.check(self.root), "nothing was checked")
        wanted, formatting.WANTED = formatting.WANTED, "no-such-clang-format"
        self.addCleanup(setattr, formatting, "WANTED", wanted)
        self.red(formatting.check(self.root), "not installed")


class Atomics(TreeTest):
    def setUp(self):
        super().setUp()
        self.put("kernels/a/count.cu", "void F(int32_t* count) { atomicAdd(count, 1); }\n")

    def test_integers_are_clean(self):
        self.put("kernels/a/b.cu", "F(const int* x, uint32_t* __restrict__ y) {\n"
                 "  atomicMax(y, 3u);  // not atomicAdd(z, 1.0f)\n}\n")
        self.assertEqual(atomics.check(self.root), [])

    def test_floats_are_red(self):
        for line in ("void F(float* sum) { atomicAdd(sum, 1.0f); }",
                     "__shared__ float sum; atomicAdd(&sum, x);",
                     "std::atomic<float> sum;", "cuda::atomic_ref<float> sum(*x);",
                     'asm("red.global.add.f32 [%0], %1;");', 'asm("atom.add.noftz.f16x2 %0;");',
                     "#pragma omp parallel for reduction(+ : sum)"):
            self.put("engine/backend/b.cuh", line + "\n")
            self.red(atomics.check(self.root), "engine/backend/b.cuh:1")

    def test_no_call_at_all_is_red(self):
        self.put("kernels/a/count.cu", "\n")
        self.red(atomics.check(self.root), "wrong place")


class PublicReports(unittest.TestCase):
    """The page of public reports stands on names; a name that is nothing's shows nothing."""

    def setUp(self):
        loader = importlib.machinery.SourceFileLoader(
            "public_reports", os.path.join(REPOSITORY, "tools", "public-reports"))
        self.tool = importlib.util.module_from_spec(
            importlib.util.spec_from_loader(loader.name, loader))
        loader.exec_module(self.tool)
        self.reports = [{"id": name, "tests": ["unit.a.S.c"]} for name in self.tool.IDS]

    def check(self, built=("unit.a.S.c", "unit.kernels.K.c"), sources=()):
        return self.tool.check(self.reports, set(built), set(sources), {"a-fault"})

    def red(self, words, **arguments):
        problems = self.check(**arguments)
        self.assertEqual(len(problems), 1, problems)
        self.assertRegex(problems[0], words)

    def test_all_ids_and_names_are_clean(self):
        self.reports[3] = {"id": "B004", "tests": ["unit.a.S*"], "faults": ["a-fault"]}
        self.reports[4] = {"id": "B005", "tests": [], "reason": "other layer", "note": "x"}
        self.assertEqual(self.check(), [])

    def test_a_missing_double_or_unknown_id_is_red(self):
        self.reports.append({"id": "B007", "tests": ["unit.a.S.c"]})
        self.red("B007 is there 2 times")
        self.reports[-1]["id"] = "B101"
        self.red("B101 is no id")
        del self.reports[-1], self.reports[99]
        self.red("B100 is missing")

    def test_a_name_of_nothing_is_red(self):
        for name in ("unit.a.S.d", "unit.a.T*", "unit.kernels.K.d", "conf.gpu.I/G.c/0"):
            self.reports[1]["tests"] = [name]
            self.red("B002: there is no test", sources={"S.d", "K.d", "G.c"})
        self.reports[1] = {"id": "B002", "tests": ["unit.a.S.c"], "faults": ["no-fault"]}
        self.red("B002: there is no planted fault no-fault")
        self.reports[1] = {"id": "B002", "tests": []}
        self.red("B002: neither a test nor a reason")

    def test_without_cuda_gpu_tests_must_be_in_the_sources(self):
        self.reports[1]["tests"] = ["conf.gpu.I/G.c/0", "unit.kernels.K.d", "conf.gpu.I/G.c*"]
        self.assertEqual(self.check(built=["unit.a.S.c"], sources={"G.c", "K.d"}), [])
        self.red("B002: there is no test unit.kernels.K.d", built=["unit.a.S.c"], sources={"G.c"})


class Labels(unittest.TestCase):
    def check(self, name="unit.a.S.c", tags=("unit", "cpu"), suites=("a",), **other):
        values = [{"name": "LABELS", "value": list(tags)}, {"name": "TIMEOUT", "value": 5}]
        values += [{"name": key, "value": value} for key, value in other.items()]
        test = {"name": name, "command": ["build/a"], "properties": values}
        return labels.check_tests([test], suites)

    def red(self, words, **arguments):
        self.assertRegex("\n".join(self.check(**arguments)), words)

    def test_one_tier_and_one_need_are_clean(self):
        self.assertEqual(self.check(), [])
        self.assertEqual(self.check(tags=("unit", "cpu", "slow", "L0")), [])

    def test_missing_double_and_unknown_labels_are_red(self):
        self.red("tier labels", tags=("cpu",))
        self.red("need labels", tags=("unit",))
        self.red("tier labels", tags=("unit", "prop", "cpu"))
        self.red("need labels", tags=("unit", "cpu", "gpu"))
        self.red("unknown labels", tags=("unit", "cpu", "sometimes"))
        self.red("must start with its tier", name="conf.a.S.c")

    def test_disabled_unbuilt_and_empty_are_red(self):
        self.red("is disabled", DISABLED=True)
        self.red("empty suite", suites=("a", "b"))
        self.assertIn("there is no test at all", labels.check_tests([], []))
        unbuilt = {"name": "a_NOT_BUILT", "properties": []}
        self.assertIn("not built", labels.check_tests([unbuilt], [])[0])


class Documents(TreeTest):
    def setUp(self):
        super().setUp()
        folder = os.path.join(REPOSITORY, "golden/schemas")
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                self.put("golden/schemas/" + name, file.read())
        self.put("golden/run/draws.bin", "x")
        self.entry = {"path": "run/draws.bin", "bytes": 1, "role": "vectors", "schema": None,
                      "sha256": documents.digest(self.root, "golden/run/draws.bin"),
                      "contract": ["c"], "license": "L", "source": {"name": "n", "version": "1"}}
        self.put_clauses("c")
        self.put_json("docs/tolerances.json",
                      {"schema": "urn:hallmark:schema:tolerances:v1", "tolerances": [
                          {"id": "t", "clause": "c", "kind": "kl", "unit": "u", "reason": "r",
                           "value": 1, "measured": None}]})
        self.mutant = {"name": "m", "clause": "c", "file": "engine/a.cc", "find": "x",
                       "replace": "y", "suite": "s", "filter": "F.*", "why": "w"}
        self.put_json("conformance/mutants/mutants.json", [self.mutant])
        self.put_manifest()

    def put_clauses(self, *ids):
        self.put_json("docs/contract/clauses.json", {
            "schema": "urn:hallmark:schema:clauses:v1", "version": 1, "clauses": [
                {"id": i, "statement": "s", "compared": "bits", "status": "in"} for i in ids]})

    def put_manifest(self, **changes):
        self.put_json("golden/manifest.json", {"schema": "urn:hallmark:schema:manifest:v1",
                                               "files": [{**self.entry, **changes}]})

    def test_a_tree_in_order_is_clean(self):
        self.assertEqual(documents.check(self.root), [])

    def test_any_other_form_than_canonical_is_red(self):
        for text in ('{"b":1,"a":2}\n', '[]', '{ }\n'):
            self.put("receipts/p.json", text)
            self.assertRegex("\n".join(documents.check(self.root)), "canonical form")

    def test_duplicates_and_nan_are_red(self):
        self.put("receipts/p.json", '{\n  "a": 1,\n  "a": 1\n}\n')
        self.red(documents.check(self.root), "duplicate key a")
        self.put("receipts/p.json", '{\n  "a": NaN\n}\n')
        self.red(documents.check(self.root), "NaN is not JSON")

    def test_unknown_members_and_unknown_schemas_are_red(self):
        self.put_json("conformance/mutants/mutants.json", [{**self.mutant, "colour": 1}])
        self.red(documents.check(self.root), "colour")
        self.put_json("conformance/mutants/mutants.json", [self.mutant])
        self.put_json("receipts/p.json", {"schema": "urn:hallmark:schema:none:v1"})
        self.red(documents.check(self.root), "no schema urn")
        self.put_json("receipts/p.json", {"a": 1})
        self.red(documents.check(self.root), "names no schema")

    def test_a_changed_missing_or_unlisted_golden_file_is_red(self):
        self.put("golden/run/draws.bin", "y")
        self.red(documents.check(self.root), "digest")
        os.remove(os.path.join(self.root, "golden/run/draws.bin"))
        self.red(documents.check(self.root), "does not exist")
        self.put("golden/run/draws.bin", "x")
        self.put("golden/run/more.bin", "x")
        self.red(documents.check(self.root), "not in golden/manifest.json")

    def test_an_unknown_clause_is_red(self):
        self.put_manifest(contract=["d"])
        self.red(documents.check(self.root), "unknown clause d")

    def test_a_schema_that_is_none_is_red(self):
        self.put_json("golden/schemas/x.v1.schema.json", {
            "$id": "urn:x", "$schema": "http://json-schema.org/draft-07/schema#", "type": "colour"})
        self.assertTrue(documents.check(self.root))


class Clauses(TreeTest):
    def setUp(self):
        super().setUp()
        self.put_clauses("in")
        self.put_json("golden/manifest.json", {"files": [{"path": "v", "contract": ["c"]}]})
        self.put_json("conformance/mutants/mutants.json", [{"name": "m", "clause": "c"}])
        self.put_json("receipts/must_pass/L0.json", {"cases": ["c/case-1"]})
        self.put("engine/base/a_prop.cc", "// Clause: c\n")
        clauses.check(self.root, write=True)

    def put_clauses(self, status):
        self.put_json("docs/contract/clauses.json", {"clauses": [
            {"id": "c", "statement": "s", "compared": "bits", "status": status}]})

    def test_a_full_row_is_clean(self):
        self.assertEqual(clauses.check(self.root), [])

    def test_each_hole_is_red_for_a_clause_that_is_in(self):
        for path, empty, kind in (
                ("golden/manifest.json", {"files": []}, "vector"),
                ("conformance/mutants/mutants.json", [], "mutant"),
                ("receipts/must_pass/L0.json", {"cases": []}, "receipt row")):
            with open(os.path.join(self.root, path), encoding="utf-8") as file:
                before = json.load(file)
            self.put_json(path, empty)
            self.red(clauses.check(self.root, write=True), f"has no {kind}")
            self.put_clauses("planned")
            self.assertEqual(clauses.check(self.root, write=True), [])
            self.put_clauses("in")
            self.put_json(path, before)
        os.remove(os.path.join(self.root, "engine/base/a_prop.cc"))
        self.red(clauses.check(self.root, write=True), "has no property")

    def test_an_unknown_clause_or_a_stale_table_is_red(self):
        self.put("engine/base/b_prop.cc", "// Clause: d\n")
        self.red(clauses.check(self.root), "unknown clause d")
        self.put("engine/base/b_prop.cc", "int b;\n")
        self.red(clauses.check(self.root), "must name its clause")
        self.put("engine/base/b_prop.cc", "// Clause: c\n")
        self.red(clauses.check(self.root), "coverage.md is stale")

    def test_a_contract_that_tells_another_story_is_red(self):
        with open(os.path.join(self.root, clauses.CONTRACT), encoding="utf-8") as file:
            page = file.read()
        self.put(clauses.CONTRACT, page.replace("Compared: bits", "Compared: roughly"))
        self.red(clauses.check(self.root), "README.md is stale")


if __name__ == "__main__":
    unittest.main()
