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

    def test_cores_are_those_of_fresh_receipts(self):
        published = sorted(glob.glob(f"{SOURCE}/receipts/published/cpu/*.intoto.jsonl"))
        self.assertEqual(len(published), 4)
        schema = read(f"{SOURCE}/receipts/schemas/receipt.v1.schema.json")
        models = {}
        for entry in read(f"{SOURCE}/receipts/must_pass/L2.json")["golden_models"]:
            models[entry["files"]["model.safetensors"]] = entry["name"]
        seen = set()
        for path in published:
            receipt = read(path)
            jsonschema.validate(receipt, schema)
            core = receipt["predicate"]["core"]
            self.assertEqual(receipt["predicate"]["context"]["verdict"],
                             {"outcome": "pass", "missing": []})
            digests = {entry["name"]: entry["sha256"] for entry in core["checkpoint"]["files"]}
            model, kv = models[digests["model.safetensors"]], core["settings"]["kv"]
            seen.add((model, kv))
            out = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, out)
            subprocess.run([PROGRAM, "receipt", f"{SOURCE}/golden/models/{model}", "--kv", kv,
                            "--level", core["level"], "--out", out], check=True,
                           stdout=subprocess.DEVNULL)
            fresh = read(glob.glob(f"{out}/*.intoto.jsonl")[0])
            self.assertEqual(fresh["predicate"]["core"], core, path)
            self.assertEqual(fresh["predicate"]["core_sha256"], receipt["predicate"]["core_sha256"])
            summary = path.replace(".intoto.jsonl", ".txt")
            with open(summary, encoding="utf-8") as file:
                self.assertIn(receipt["predicate"]["core_sha256"], file.read())
        self.assertEqual(len(seen), 4)


if __name__ == "__main__":
    unittest.main()
