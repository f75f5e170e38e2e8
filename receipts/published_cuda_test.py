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
    def test_every_receipt_verifies(self):
        self.assertTrue(FOLDERS)
        for folder in FOLDERS:
            paths = sorted(glob.glob(f"{folder}/*.intoto.jsonl"))
            self.assertEqual(len(paths), 3, folder)
            result = subprocess.run([PROGRAM, "verify", *paths], text=True, capture_output=True,
                                    check=False)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertEqual(result.stdout.count("PASSED at L3"), 3, result.stdout)
            schema = read(f"{SOURCE}/receipts/schemas/receipt.v1.schema.json")
            for path in paths:
                receipt = read(path)
                jsonschema.validate(receipt, schema)
                self.assertEqual(receipt["predicate"]["context"]["engine"]["backend"], "cuda")

    def test_the_kernels_are_those_of_the_receipts(self):
        for folder in FOLDERS:
            with open(f"{folder}/kernels.sha256", encoding="utf-8") as file:
                self.assertEqual(
                    file.read().strip(), kernels_digest(),
                    f"the kernels have changed since {folder}: run receipts/publish-cuda on that GPU")


if __name__ == "__main__":
    unittest.main()
