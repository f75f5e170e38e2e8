# SPDX-License-Identifier: Apache-2.0
"""The example does what it says: both replies come interleaved, each is what the program gives for
its prompt alone and undrafted, and a refusal is a line and an exit code."""
import json
import os
import re
import subprocess
import unittest

MODELS = os.path.join(os.environ["HALLMARK_SOURCE"], "golden/models")
SCRIBE = os.path.join(MODELS, "scribe-11m-exl3")
DRAFTER = os.path.join(MODELS, "scribe-11m-dflash2")
PROMPTS = ("57,318,262", "101,102,103,104,105")


def run(program, *arguments):
    return subprocess.run([os.environ[program], *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=100, check=False, text=True)


class TwoStreams(unittest.TestCase):
    def test_both_replies_are_those_of_each_prompt_alone(self):
        for drafter in ([], [DRAFTER]):
            done = run("TWO_STREAMS", SCRIBE, *drafter)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            *tokens, first, second = done.stdout.splitlines()
            order = [int(line.split()[1][0]) for line in tokens]
            self.assertLess(order.index(1), len(order) - 1 - order[::-1].index(0))  # interleaved
            for stream, (prompt, last) in enumerate(zip(PROMPTS, (first, second))):
                alone = json.loads(run("HALLMARK", "run", SCRIBE, "--ids", prompt, "--max-tokens",
                                       "32", "--temperature", "0.7", "--seed", "1", "--copy-match",
                                       "0", "--json").stdout)["ids"]
                self.assertEqual([int(line.split()[2]) for line in tokens
                                  if line.startswith(f"stream {stream}: ")], alone)
                self.assertRegex(last, rf"^stream {stream} took \d+ rounds for {len(alone)} tokens; "
                                       r"\d+ of \d+ drafts were right$")

    def test_what_cannot_be_opened_is_named(self):
        done = run("TWO_STREAMS", SCRIBE, os.path.join(MODELS, "prism-dflash"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertTrue(re.match(r"^mismatch: .*prism-dflash/config\.json", done.stderr))
        self.assertEqual(run("TWO_STREAMS").returncode, 2)


if __name__ == "__main__":
    unittest.main()
