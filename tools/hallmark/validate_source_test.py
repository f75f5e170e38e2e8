# SPDX-License-Identifier: Apache-2.0
"""hallmark validate --reference as a vendor meets it: a sound quantization end to end, and on windows
of the vendor's own. HALLMARK_SOURCE_WRITER names the program that makes a source for the golden
model."""
import hashlib
import json
import os
import re
import struct
import subprocess
import unittest

import jsonschema

from cli_test import SCRIBE, Case, run, schema

LAYERS = "model.language_model.layers."


class Source(Case):
    def setUp(self):
        super().setUp()
        self.source = self.path("source")
        subprocess.run([os.environ["HALLMARK_SOURCE_WRITER"], SCRIBE, self.source], check=True,
                       timeout=60)

    def test_a_sound_model_is_accepted_and_its_worst_tensors_are_named(self):
        done = run("validate", SCRIBE, "--reference", self.source)
        text = done.stdout.decode()
        self.assertEqual((done.returncode, done.stderr), (0, b""), text)
        for step in ("structure", "numbers", "behaviour"):
            self.assertIn(f"\n{step}: accepted (", text)
        self.assertIn("\nsource: accepted (109 tensors, 2048 tokens)\n", text)
        worst = text.split("the largest errors (NMSE) of 51 quantized tensors:\n")[1].split("\n")[:5]
        self.assertRegex(worst[0], rf"^    0\.3\d* at 1 bit, .*: {LAYERS}2\.linear_attn\.in_proj_z$")
        self.assertRegex(worst[1], rf"^    0\.08\d* at 2 bits, .*: {LAYERS}7\.self_attn\.o_proj$")
        for line in worst[2:]:
            self.assertRegex(line, rf"^    0\.0[12]\d* at 3 bits, .*: {LAYERS}\d\.")
        told = r"over 2048 tokens in 8 windows: mean KL (\S+) nat, largest \S+ nat, " \
               r"top-1 agreement (\S+)\n"
        self.assertRegex(text, told)
        divergence, agreement = map(float, re.search(told, text).groups())
        self.assertTrue(0.01 < divergence < 3, divergence)
        self.assertTrue(0.3 < agreement < 1, agreement)

    def test_windows_of_the_vendors_own(self):
        windows = [[57, 318, 262, 1033], [4095, 0, 7]]
        path = self.path("windows.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for ids in windows:
                file.write(json.dumps({"ids": ids, "text": "what a vendor keeps beside them"}) + "\n")
        done = run("validate", SCRIBE, "--reference", self.source, "--step", "source", "--windows",
                   path, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        value = json.loads(done.stdout)
        jsonschema.validate(value, schema("validation"))
        predictions = value["steps"][0]["facts"]["predictions"]
        ids = sum(windows, [])
        self.assertEqual((predictions["windows"], predictions["tokens"]), (2, len(ids)))
        self.assertEqual(predictions["windows_file"], path)
        self.assertEqual(predictions["ids_sha256"],
                         hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest())
        self.assertNotIn("sampled_with_seed", predictions)
        self.assertEqual(value["steps"][0]["compared"], {"tensors": 109, "tokens": len(ids)})


if __name__ == "__main__":
    unittest.main()
