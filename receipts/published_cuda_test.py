# SPDX-License-Identifier: Apache-2.0
"""The published receipts of GPUs, on a machine without one: each verifies, and says which kernels it
was made with. Red after a change to the kernels: run receipts/publish-cuda on the GPU again.
HALLMARK names the program, HALLMARK_SOURCE the tree."""
import glob
import os
import subprocess
import sys
import unittest

import jsonschema

PROGRAM = os.environ["HALLMARK"]
SOURCE = os.environ["HALLMARK_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "receipts"))
from kernels_digest import kernels_digest  # noqa: E402
from published_test import read  # noqa: E402

FOLDERS = [path for path in sorted(glob.glob(f"{SOURCE}/receipts/published/*"))
           if os.path.basename(path) != "cpu"]


class PublishedCuda(unittest.TestCase):
    def verify(self, paths, *flags):
        result = subprocess.run([PROGRAM, "verify", *paths, *flags], text=True, capture_output=True,
                                check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_every_receipt_verifies(self):
        self.assertTrue(FOLDERS)
        schema = read(f"{SOURCE}/receipts/schemas/receipt.v1.schema.json")
        for folder in FOLDERS:
            paths = sorted(glob.glob(f"{folder}/*.intoto.jsonl"))
            for path in paths:
                receipt = read(path)
                jsonschema.validate(receipt, schema)
                self.assertEqual(receipt["predicate"]["context"]["engine"]["backend"], "cuda")
            expected = 1 if folder.endswith("-27b") else 2
            self.assertEqual(len(paths), expected, folder)
            self.assertEqual(self.verify(paths).count("PASSED at L3"), expected)
            if folder.endswith("-27b"):
                self.check_synthetic(paths)

    def check_synthetic(self, paths):
        rows = read(paths[0])["predicate"]["core"]["rows"]
        replayed = [row["counts"] for row in rows if row["case"].startswith("replayed")]
        self.assertEqual(len(replayed), 5)
        for counts in replayed:
            self.assertGreater(counts["accepted"], 0)

    def test_the_kernels_are_those_of_the_receipts(self):
        for folder in FOLDERS:
            with open(f"{folder}/kernels.sha256", encoding="utf-8") as file:
                self.assertEqual(
                    file.read().strip(), kernels_digest(),
                    f"the kernels have changed since {folder}: run receipts/publish-cuda on that GPU")


if __name__ == "__main__":
    unittest.main()
