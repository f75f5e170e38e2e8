# SPDX-License-Identifier: Apache-2.0
"""hallmark synth and hallmark plan as users meet them: a small random checkpoint opens and runs, the
same flags give the same bytes, nothing half-written stays; a 27B's plan comes to its figures from
headers alone. HALLMARK names the program, HALLMARK_SOURCE the tree."""
import hashlib
import json
import math
import os
import resource
import shutil
import struct
import subprocess
import tempfile
import unittest

import jsonschema

PROGRAM = os.environ["HALLMARK"]
SOURCE = os.environ["HALLMARK_SOURCE"]
SCRIBE = os.path.join(SOURCE, "golden/models/scribe-11m-exl3")
GIB = 2 ** 30
SMALL = ("--geometry", "qwen3.5-0.8b", "--layers", 4, "--vocab", 2048, "--bits", "3.5")
RUNTIME = 512 << 20  # assumed, not allocated
# What the public figures for the 27B on a 24 GiB card add up to; see docs/guide/plan-memory.md.
ALLOCATIONS = 21.7 * GIB


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, timeout=240,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, **options)


def schema(name):
    with open(f"{SOURCE}/receipts/schemas/{name}.v1.schema.json", encoding="utf-8") as file:
        return json.load(file)


def digests(folder):
    result = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                result[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return result


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def check_ok(self, done):
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode()

    def check_refused(self, done, exit_code, code, *parts):
        text = done.stderr.decode()
        self.assertEqual(done.returncode, exit_code, text)
        self.assertRegex(text, rf"^hallmark: {code}: [^\n]+\n$")
        for part in parts:
            self.assertIn(part, text)

    def synth(self, name, *arguments):
        self.check_ok(run("synth", *arguments, "--out", self.path(name)))
        return self.path(name)

    def plan(self, *arguments):
        value = json.loads(self.check_ok(run("plan", *arguments, "--json")))
        jsonschema.validate(value, schema("plan"))
        for part in ("fixed", "per_stream"):
            self.assertEqual(sum(line["bytes"] for line in value[part]), value["totals"][part])
        return value


class Synth(Case):
    def test_a_small_model_and_its_drafter_run(self):
        model = self.synth("model", *SMALL, "--drafter", "dflash2", "--seed", 7)
        text = self.check_ok(run("inspect", model))
        self.assertIn("3 bits", text)
        self.assertIn("4 bits", text)
        logits = self.path("logits.safetensors")
        self.check_ok(run("logits", model, "--ids", "1,2,3,500,900,44", "--out", logits))
        with open(logits, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
            begin, end = header["logits"]["data_offsets"]
            values = struct.unpack(f"<{(end - begin) // 4}f", file.read())
        self.assertEqual(len(values), 6 * 2048)
        for row in range(6):
            part = values[row * 2048:(row + 1) * 2048]
            self.assertTrue(all(map(math.isfinite, part)))
            top = max(part)
            weights = [math.exp(value - top) for value in part]
            total = sum(weights)
            entropy = -sum(w / total * math.log(w / total) for w in weights if w > 0)
            self.assertTrue(0.5 < entropy < math.log(2048) - 0.5, entropy)

    def test_drafts_land_and_ids_vary(self):
        """Over two seeds and two samplings a tenth of the drafts land at least, and a sampled reply
        does not say one thing over and over."""
        drafted = accepted = 0
        for seed in (7, 8):
            model = self.synth(f"model{seed}", *SMALL, "--drafter", "dflash2", "--seed", seed)
            for sampling in ((), ("--temperature", 1, "--top-k", 20, "--seed", 5)):
                flags = ("run", model, "--ids", "1,2,3", "--max-tokens", 48, *sampling, "--json")
                plain = json.loads(self.check_ok(run(*flags)))
                if sampling:
                    self.assertGreaterEqual(len(set(plain["ids"])), 8)
                reply = json.loads(self.check_ok(run(*flags, "--drafter", model + "/dflash2",
                                                     "--window", 7)))
                self.assertEqual(reply["ids"], plain["ids"])
                drafted += reply["drafted"]
                accepted += reply["accepted"]
        self.assertGreater(accepted, drafted / 10)

    def test_every_form_opens(self):
        for codebook, head in (("mcg", 16), ("3inst", 4), ("mul1", 8)):
            model = self.synth(codebook, "--geometry", "qwen3.5-2b", "--layers", 4, "--vocab", 300,
                               "--codebook", codebook, "--head-bits", head, "--bits", 2,
                               "--drafter", "dflash2", "--drafter-weights", "4bit", "--seed", 1)
            done = run("run", model, "--ids", "1,2", "--max-tokens", 8, "--drafter",
                       model + "/dflash2", "--window", 7, "--json")
            self.assertGreater(json.loads(self.check_ok(done))["drafted"], 0)

    def test_the_same_flags_give_the_same_bytes(self):
        folders = [self.synth(name, *SMALL, "--drafter", "dflash2", "--seed", seed)
                   for name, seed in (("a", 7), ("b", 7), ("c", 8))]
        first, again, other = map(digests, folders)
        self.assertEqual(first, again)
        self.assertNotEqual(first["model.safetensors"], other["model.safetensors"])
        self.assertEqual(first["config.json"], other["config.json"])

    def test_nothing_is_left_where_it_cannot_be_written(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        done = run("synth", *SMALL, "--seed", 1, "--out", self.path("model"), preexec_fn=small_files)
        self.check_refused(done, 3, "io", "model.safetensors")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_folder_that_is_there_is_left_alone(self):
        os.mkdir(self.path("full"))
        with open(self.path("full/mine"), "w", encoding="utf-8") as file:
            file.write("x")
        done = run("synth", *SMALL, "--seed", 1, "--out", self.path("full"))
        self.check_refused(done, 2, "out_of_range", "--out", "already")
        self.assertEqual(os.listdir(self.folder), ["full"])
        self.assertEqual(os.listdir(self.path("full")), ["mine"])
        os.mkdir(self.path("empty"))
        self.synth("empty", *SMALL, "--headers-only", "--seed", 1)
        self.assertEqual(sorted(os.listdir(self.folder)), ["empty", "full"])

    def test_bad_values_name_their_flag(self):
        good = {"--geometry": "qwen3.5-0.8b", "--seed": 1, "--out": self.path("model")}
        for flag, value in (("--geometry", "qwen"), ("--seed", "-1"), ("--bits", "9"),
                            ("--bits", "nan"), ("--head-bits", "9"), ("--codebook", "mul2"),
                            ("--layers", "0"), ("--vocab", "1"), ("--drafter", "dflash3"),
                            ("--drafter-weights", "4bit"), ("--out", "")):
            flags = {**good, flag: value}
            arguments = [part for pair in flags.items() for part in pair]
            self.check_refused(run("synth", *arguments), 2, "out_of_range", flag)
        done = run("synth", *[part for pair in good.items() for part in pair], "--drafter", "dflash2",
                   "--drafter-weights", "2bit")
        self.check_refused(done, 2, "out_of_range", "--drafter-weights")
        done = run("synth", "--geometry", "qwen3.5-0.8b", "--seed", 1, "--out", self.path("no/where"))
        self.check_refused(done, 3, "io", "no/where")
        self.assertEqual(os.listdir(self.folder), [])


class Plan27B(Case):
    def setUp(self):
        super().setUp()
        self.model = self.synth("big", "--geometry", "qwen3.8-27b", "--bits", "3.5", "--head-bits", 6,
                                "--drafter", "dflash2", "--headers-only", "--seed", 1)
        self.flags = (self.model, "--kv", "fp8", "--drafter", self.model + "/dflash2",
                      "--drafter-weights", "4bit")

    def test_headers_take_no_room(self):
        blocks = sum(os.stat(os.path.join(root, name)).st_blocks * 512
                     for root, _, names in os.walk(self.model) for name in names)
        self.assertLess(blocks, 16 << 20)
        value = json.loads(self.check_ok(run("inspect", self.model, "--json")))
        self.assertEqual(value["totals"]["weights"], 26895998464)
        self.assertEqual(value["quantization"]["bits"], 3.5)

    def test_the_public_figures_fit(self):
        vram = f"{int((ALLOCATIONS + RUNTIME) / 2 ** 20)}MiB"
        mapped = (*self.flags, "--embedding", "mapped", "--vram", vram)
        value = self.plan(*mapped)
        self.assertLessEqual(value["totals"]["model"], 14.38 * GIB)
        self.assertGreaterEqual(value["fits"]["one_stream_context"], 237568)
        self.assertEqual([fit["context"] for fit in value["fits"]["streams"]], [32768])
        self.assertGreaterEqual(value["fits"]["streams"][0]["streams"], 4)
        for asked in (("--context", 237568), ("--streams", 4, "--context", 32768)):
            chosen = self.plan(*mapped, *asked)["chosen"]
            self.assertLessEqual(chosen["bytes"] - RUNTIME, ALLOCATIONS)
        self.assertEqual(value["kv"]["fp8_position_bytes"], 32768)
        self.assertEqual(value["kv"]["bf16_position_bytes"], 65536)
        # Per stream: 48 states of 3 MiB, whatever rounding adds.
        state = [part for part in value["per_stream"] if part["id"] == "stream.state"][0]["bytes"]
        self.assertTrue(144 * 2 ** 20 < state < 200 * 2 ** 20)

    def test_mapping_and_sharing_save_what_they_are_said_to(self):
        device = self.plan(*self.flags, "--vram", "24GiB")
        mapped = self.plan(*self.flags, "--vram", "24GiB", "--embedding", "mapped")
        def blocks(plan):  # what slabs leave over differs beside them
            return sum(part["bytes"] for part in plan["fixed"] if part["id"] != "slabs")
        saved = blocks(device) - blocks(mapped)
        savings = mapped["savings"]
        self.assertEqual(saved, savings["embedding_mapping"] + savings["codebook_mapping"])
        self.assertAlmostEqual(savings["embedding_mapping"] / GIB, 2.37, delta=0.01)
        # 1,024 rows of attention, DeltaNet and MLP, and only the widest of them is paid.
        widths = (26624, 32864, 34816)
        expected = (sum(widths) - max(widths)) * 1024 * 4
        self.assertAlmostEqual(savings["scratch_overlap"], expected, delta=2 << 20)
        integrated = self.plan(*self.flags, "--vram", "24GiB", "--embedding", "mapped", "--integrated")
        self.assertEqual(integrated["totals"]["fixed"], device["totals"]["fixed"])
        self.assertEqual(integrated["savings"]["embedding_mapping"], 0)
        text = self.check_ok(run("plan", *self.flags, "--vram", "24GiB", "--embedding", "mapped"))
        for part in ("2.37 GiB", "242.50 MiB", "232.38 MiB", "streams of 32768 positions", "assumed"):
            self.assertIn(part, text)

    def test_what_cannot_fit_is_refused_with_what_can(self):
        done = run("plan", *self.flags, "--vram", "24GiB", "--streams", 4, "--context", 262144)
        self.check_refused(done, 1, "out_of_range", self.model, "24.00 GiB", "positions each",
                           "the largest that fits")
        done = run("plan", *self.flags, "--vram", "8GiB")
        self.check_refused(done, 1, "out_of_range", "8.00 GiB", "before the first position")
        done = run("plan", *self.flags, "--vram", "8GiB", "--json")
        jsonschema.validate(json.loads(done.stdout), schema("error"))
        # One more position than fits, and exactly what fits.
        most = self.plan(*self.flags, "--vram", "18GiB")["fits"]["one_stream_context"]
        self.assertLess(most, 262144)
        self.plan(*self.flags, "--vram", "18GiB", "--context", most)
        done = run("plan", *self.flags, "--vram", "18GiB", "--context", most + 1)
        self.check_refused(done, 1, "out_of_range", f"{most} positions")


class PlanFlags(Case):
    def test_a_real_checkpoint(self):
        value = self.plan(SCRIBE, "--vram", "1GiB", "--kept", "0")
        self.assertEqual(value["fits"]["one_stream_context"], 4096)
        self.assertEqual(value["chosen"]["context"], 4096)
        self.assertIsNone(value["drafter"])

    def test_bad_values_name_their_flag(self):
        for flag, value in (("--vram", "24"), ("--vram", "much"), ("--vram", "24GB"), ("--kv", "int8"),
                            ("--embedding", "disk"), ("--context", "0"), ("--context", "5000"),
                            ("--streams", "9"), ("--kept", "-1"), ("--drafter-weights", "4bit")):
            arguments = {"--vram": "1GiB", flag: value}
            done = run("plan", SCRIBE, *[part for pair in arguments.items() for part in pair])
            if value == "24":  # bytes: a number of them, and too few
                self.check_refused(done, 1, "out_of_range", "before the first position")
            else:
                self.check_refused(done, 2, "out_of_range", flag)
        self.check_refused(run("plan", SCRIBE), 2, "usage", "--vram")
        self.check_refused(run("plan", self.path("no"), "--vram", "1GiB"), 2, "not_found", "no")

    def test_help_has_examples(self):
        for command in ("plan", "synth"):
            words = self.check_ok(run(command, "--help"))
            self.assertIn("Examples:", words)
            self.assertIn(f"hallmark {command}", words)


if __name__ == "__main__":
    unittest.main()
