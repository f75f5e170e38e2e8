# SPDX-License-Identifier: Apache-2.0
"""Receipts of the golden models as the program writes them: shape, digests, and a core that repeats
over threads, tiers and runs. HALLMARK names the program, HALLMARK_SOURCE the tree."""
import copy
import glob
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import jsonschema

PROGRAM = os.environ["HALLMARK"]
SOURCE = os.environ["HALLMARK_SOURCE"]
MODELS = os.path.join(SOURCE, "golden/models")


def canonical(value):
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def digest(data):
    return hashlib.sha256(data).hexdigest()


def file_digest(path):
    with open(path, "rb") as file:
        return digest(file.read())


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Receipts(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.schema = load(f"{SOURCE}/receipts/schemas/receipt.v1.schema.json")

    def issue(self, model, *flags, exit_code=0):
        out = tempfile.mkdtemp(dir=self.folder)
        done = subprocess.run([PROGRAM, "receipt", os.path.join(MODELS, model), "--out", out, *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=900)
        self.assertEqual(done.returncode, exit_code, done.stderr.decode() + done.stdout.decode())
        self.assertEqual(done.stderr, b"")
        receipts = glob.glob(f"{out}/*.intoto.jsonl")
        self.assertEqual(len(receipts), 1)
        name = os.path.basename(receipts[0])[:-len(".intoto.jsonl")]
        self.assertEqual(sorted(os.listdir(out)), sorted([name + ".intoto.jsonl", name + ".txt"]))
        with open(receipts[0], encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count("\n"), 1)
        statement = json.loads(text)
        jsonschema.validate(statement, self.schema)
        predicate = statement["predicate"]
        core_digest = digest(canonical(predicate["core"]).encode())
        self.assertEqual(predicate["core_sha256"], core_digest)
        level, backend, short = name.split(".")
        self.assertEqual((level, backend, short),
                         (predicate["core"]["level"], "cpu", core_digest[:12]))
        shown = done.stdout.decode()
        self.assertIn(core_digest, shown)
        self.assertIn(receipts[0], shown)
        return statement, shown

    def test_core_repeats_over_threads_tiers_and_runs(self):
        one, shown = self.issue("scribe-11m-exl3", "--threads", "1")
        for threads, tier in ((2, self.other_tier()), (1, "scalar")):
            again, _ = self.issue("scribe-11m-exl3", "--threads", str(threads), "--tier", tier)
            self.assertEqual(one["predicate"]["core"], again["predicate"]["core"])
            self.assertEqual(one["predicate"]["core_sha256"], again["predicate"]["core_sha256"])
            self.assertEqual(again["predicate"]["context"]["engine"]["threads"], threads)
            self.assertEqual(again["predicate"]["context"]["engine"]["tier"], tier)
        self.assertIn("conforming", shown)
        core = one["predicate"]["core"]
        self.check_digests(one, "scribe-11m-exl3")
        self.check_rows(core)
        clauses = {row["clause"] for row in core["rows"]}
        self.assertEqual(clauses, {"chunked-equals-whole", "decode-exact", "format-accept",
                                   "format-reject", "model-golden", "row-invariance",
                                   "sampler-exact", "scratch-clean", "text-exact"})

    @staticmethod
    def other_tier():
        """AVX2 where the machine has it, else the definition itself."""
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return "avx2" if " avx2 " in file.read() else "scalar"

    def test_prism_with_fp8_keys_and_values(self):
        fp8, _ = self.issue("prism-exl3", "--kv", "fp8")
        core = fp8["predicate"]["core"]
        self.assertEqual(core["settings"]["kv"], "fp8")
        self.check_digests(fp8, "prism-exl3")
        self.check_rows(core)

    def test_levels_hold_those_below_and_no_more(self):
        cores = [self.issue("scribe-11m-exl3", "--level", level)[0]["predicate"]["core"]
                 for level in ("L0", "L1")]
        self.assertEqual(sorted(cores[0]["must_pass"]), ["L0"])
        self.assertEqual(sorted(cores[1]["must_pass"]), ["L0", "L1"])
        names = [[(row["clause"], row["case"]) for row in core["rows"]] for core in cores]
        self.assertLess(set(names[0]), set(names[1]))
        self.assertEqual({clause for clause, _ in names[0]}, {"format-accept", "format-reject"})

    def test_missing_vectors_deny(self):
        """Without the golden folder nothing can be decided, and nothing is written."""
        out = os.path.join(self.folder, "out")
        done = subprocess.run([PROGRAM, "receipt", os.path.join(MODELS, "scribe-11m-exl3"), "--level",
                               "L1", "--out", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "HALLMARK_GOLDEN": self.folder}, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"hallmark: io: a published vector file", done.stderr)
        self.assertFalse(os.path.exists(out))

    def test_a_wrong_vector_is_a_failed_row_in_a_receipt_that_says_so(self):
        golden = os.path.join(self.folder, "golden")
        shutil.copytree(f"{SOURCE}/golden", golden)
        path = f"{golden}/run/sampler_draws.json"
        draws = load(path)
        draws["cases"][17]["token"] += 1
        with open(path, "w", encoding="utf-8") as file:
            json.dump(draws, file)
        os.environ["HALLMARK_GOLDEN"] = golden
        self.addCleanup(os.environ.pop, "HALLMARK_GOLDEN")
        statement, shown = self.issue("scribe-11m-exl3", "--level", "L1", exit_code=1)
        bad = [row for row in statement["predicate"]["core"]["rows"] if row["outcome"] != "pass"]
        self.assertEqual([(row["case"], row["outcome"]) for row in bad], [("draws", "fail")])
        self.assertNotEqual(bad[0]["expected"], bad[0]["actual"])
        self.assertIn("draw 17", bad[0]["detail"])
        self.assertIn("NOT conforming", shown)

    def test_a_checkpoint_without_a_reference_has_no_golden_rows(self):
        """The same weights under another config text: known by digest, so no longer golden."""
        model = os.path.join(self.folder, "model")
        shutil.copytree(f"{MODELS}/scribe-11m-exl3", model)
        with open(f"{model}/config.json", "a", encoding="utf-8") as file:
            file.write("\n")
        statement, shown = self.issue(model)
        core = statement["predicate"]["core"]
        self.assertNotIn("model-golden", {row["clause"] for row in core["rows"]})
        self.assertIn("No reference logits", shown)
        self.check_rows(core)

    def test_the_schema_is_closed(self):
        receipt, _ = self.issue("scribe-11m-exl3", "--level", "L0")
        for change in (lambda r: r.update(extra=1), lambda r: r["predicate"].pop("core_sha256"),
                       lambda r: r["predicate"]["core"].update(host="mine"),
                       lambda r: r["predicate"]["core"]["rows"][0].update(outcome="fine"),
                       lambda r: r["predicate"]["core"]["rows"].clear(),
                       lambda r: r["predicate"]["core"]["rows"][0]["counts"].update(values=-1)):
            changed = copy.deepcopy(receipt)
            change(changed)
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(changed, self.schema)

    def check_digests(self, statement, model):
        core = statement["predicate"]["core"]
        folder = os.path.join(MODELS, model)
        for entry in core["checkpoint"]["files"]:
            self.assertEqual(entry["sha256"], file_digest(os.path.join(folder, entry["name"])))
            self.assertEqual(entry["bytes"], os.path.getsize(os.path.join(folder, entry["name"])))
        self.assertEqual(core["checkpoint"]["sha256"],
                         digest(canonical(core["checkpoint"]["files"]).encode()))
        for entry in core["vectors"]:
            self.assertEqual(entry["sha256"], file_digest(f"{SOURCE}/golden/{entry['name']}"))
        self.assertEqual(core["contract"]["sha256"],
                         file_digest(f"{SOURCE}/docs/contract/clauses.json"))
        self.assertEqual(core["tolerances"], file_digest(f"{SOURCE}/docs/tolerances.json"))
        for level, value in core["must_pass"].items():
            self.assertEqual(value, file_digest(f"{SOURCE}/receipts/must_pass/{level}.json"))
        subjects = {s["name"]: s["digest"]["sha256"] for s in statement["subject"]}
        self.assertEqual(subjects["hallmark"], file_digest(PROGRAM))
        self.assertEqual(subjects["model.safetensors"],
                         file_digest(os.path.join(folder, "model.safetensors")))
        self.assertNotIn(subjects["hallmark"], json.dumps(core))

    def check_rows(self, core):
        names = [row["clause"] + "/" + row["case"] for row in core["rows"]]
        self.assertEqual(len(names), len(set(names)))
        for level in core["must_pass"]:
            needed = load(f"{SOURCE}/receipts/must_pass/{level}.json")["cases"]
            self.assertEqual([name for name in needed if name not in names], [])
        for row in core["rows"]:
            self.assertEqual(row["outcome"], "pass", row)
            self.assertTrue(row["counts"], row)
            self.assertTrue(all(count > 0 for count in row["counts"].values()), row)
            self.assertEqual(row["expected"], row["actual"])
            if row["clause"] != "model-golden":
                self.assertEqual(len(row["expected"]), 64, row)
            if "distinct_ids" in row["counts"]:
                self.assertGreaterEqual(row["counts"]["distinct_ids"], 16)
                self.assertGreaterEqual(row["counts"]["entropy_millinats"], 500)


if __name__ == "__main__":
    unittest.main()
