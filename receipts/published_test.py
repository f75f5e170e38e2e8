# SPDX-License-Identifier: Apache-2.0
"""The published receipts of the CPU backend against fresh ones: same core, to the byte. Red means
that an arithmetic, the contract, a vector or a tolerance changed and receipts/publish was not run.
HALLMARK names the program, HALLMARK_SOURCE the tree."""
import glob
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import jsonschema

PROGRAM = os.environ["HALLMARK"]
SOURCE = os.environ["HALLMARK_SOURCE"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.loads(file.read())


class Published(unittest.TestCase):
    maxDiff = None

    def fresh(self, model, kv, drafter):
        out = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, out)
        flags = ["--drafter", f"{SOURCE}/golden/models/{drafter}"] if drafter else []
        subprocess.run([PROGRAM, "receipt", f"{SOURCE}/golden/models/{model}", "--kv", kv, "--out",
                        out, *flags], check=True, stdout=subprocess.DEVNULL)
        return read(glob.glob(f"{out}/*.intoto.jsonl")[0])["predicate"]

    def test_cores_are_those_of_fresh_receipts(self):
        published = sorted(glob.glob(f"{SOURCE}/receipts/published/cpu/*.intoto.jsonl"))
        schema = read(f"{SOURCE}/receipts/schemas/receipt.v1.schema.json")
        models = {}
        for entry in read(f"{SOURCE}/receipts/must_pass/L2.json")["golden_models"]:
            models[entry["files"]["model.safetensors"]] = entry["name"]
        drafters = {}
        for entry in read(f"{SOURCE}/receipts/must_pass/L3.json")["golden_models"]:
            drafters[entry["files"]["drafter/model.safetensors"]] = entry["name"]
        receipts = {}
        for path in published:
            receipt = read(path)
            jsonschema.validate(receipt, schema)
            predicate = receipt["predicate"]
            core = predicate["core"]
            self.assertEqual(predicate["context"]["verdict"], {"outcome": "pass", "missing": []})
            digests = {entry["name"]: entry["sha256"] for entry in core["checkpoint"]["files"]}
            drafter = {entry["name"]: entry["sha256"]
                       for entry in core.get("drafter", {"files": []})["files"]}
            key = (models[digests["model.safetensors"]], core["settings"]["kv"],
                   drafters[drafter["model.safetensors"]] if drafter else "")
            self.assertNotIn(key, receipts)
            receipts[key] = predicate
            with open(path.replace(".intoto.jsonl", ".txt"), encoding="utf-8") as file:
                self.assertIn(predicate["core_sha256"], file.read())
        self.assertEqual(sorted(receipts), [
            ("prism-exl3", "bf16", ""), ("prism-exl3", "fp8", ""),
            ("prism-exl3", "fp8", "prism-dflash"), ("scribe-11m-exl3", "bf16", ""),
            ("scribe-11m-exl3", "bf16", "scribe-11m-dflash2"), ("scribe-11m-exl3", "fp8", "")])

        # A receipt with a drafter holds every row of the one without: one run serves both.
        with_drafter = {key[:2]: key for key in receipts if key[2]}
        for key, predicate in receipts.items():
            if not key[2] and key[:2] in with_drafter:
                rows = {(row["clause"], row["case"]): row
                        for row in receipts[with_drafter[key[:2]]]["core"]["rows"]}
                for row in predicate["core"]["rows"]:
                    self.assertEqual(rows[row["clause"], row["case"]], row)
                continue
            fresh = self.fresh(*key)
            self.assertEqual(fresh["core"], predicate["core"], key)
            self.assertEqual(fresh["core_sha256"], predicate["core_sha256"])


if __name__ == "__main__":
    unittest.main()
