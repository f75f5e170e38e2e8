# SPDX-License-Identifier: Apache-2.0
"""The program as users meet it: what each command prints, and how each refusal ends: exit code, one
line that says where, an error object with --json, nothing half-written. HALLMARK names the program,
HALLMARK_SOURCE the tree."""
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import jsonschema

PROGRAM = os.environ["HALLMARK"]
SOURCE = os.environ["HALLMARK_SOURCE"]
SCRIBE = os.path.join(SOURCE, "golden/models/scribe-11m-exl3")
PRISM = os.path.join(SOURCE, "golden/models/prism-exl3")
IDS = "57,318,262,1033"


def schema(name):
    with open(f"{SOURCE}/receipts/schemas/{name}.v1.schema.json", encoding="utf-8") as file:
        return json.load(file)


def run(*arguments, **options):
    options.setdefault("timeout", 240)
    return subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, **options)


def read_file(path):
    """Header and data bytes of a safetensors file."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        return header, file.read()


def read_tensors(path):
    """A function from a tensor's name and struct letter to its values."""
    header, data = read_file(path)
    def tensor(name, letter):
        begin, end = header[name]["data_offsets"]
        return struct.unpack(f"<{(end - begin) // 4}{letter}", data[begin:end])
    return tensor


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

    def check_json_refused(self, done, exit_code, code, **where):
        self.assertEqual(done.returncode, exit_code)
        error = json.loads(done.stdout)
        jsonschema.validate(error, schema("error"))
        self.assertEqual(error["error"]["code"], code)
        for key, value in where.items():
            self.assertEqual(error["error"]["where"].get(key), value, error)


class Help(Case):
    def test_every_command_explains_itself_with_examples(self):
        text = self.check_ok(run("--help"))
        for command in ("inspect", "run", "logits", "draft", "receipt", "bench"):
            self.assertIn(command, text)
            words = self.check_ok(run(*command.split(), "--help"))
            self.assertIn("Examples:", words)
            self.assertIn(f"hallmark {command}", words)
        self.assertIn("Exit codes", text)

    def test_names_no_flag_that_does_not_exist(self):
        for command in ("run", "logits", "draft", "receipt", "inspect"):
            words = self.check_ok(run(command, "--help"))
            for flag in set(re.findall(r"(?<![\w-])--[a-z-]+", words)):
                done = run(command, SCRIBE, flag)
                self.assertNotIn("not expected", done.stderr.decode(), flag)

    def test_version_names_contract_and_arithmetic(self):
        text = self.check_ok(run("--version"))
        self.assertRegex(text, r"^hallmark \d+\.\d+\.\d+\ncontract 1 sha256:[0-9a-f]{64}\n"
                               r"arithmetic cpu/1/[0-9a-f]{12}\n$")


class Usage(Case):
    def test_a_command_line_that_cannot_be_read(self):
        for arguments in ([], ["frobnicate"], ["run"], ["run", SCRIBE, "--bogus"],
                          ["logits", SCRIBE, "--ids", "1"], ["receipt", SCRIBE], ["bench"],
                          ["inspect", SCRIBE, "extra"], ["run", SCRIBE, "--drafter"],
                          ["draft", SCRIBE, "--ids", "1", "--anchor", "1", "--out", "x"]):
            self.check_refused(run(*arguments), 2, "usage", "--help")

    def test_json_is_promised_and_kept(self):
        self.check_json_refused(run("run", "--json"), 2, "usage")

    def test_a_folder_that_is_not_there(self):
        nowhere = self.path("nowhere")
        for arguments in (["inspect", nowhere], ["run", nowhere, "--prompt", "x"],
                          ["logits", nowhere, "--ids", "1", "--out", self.path("o")],
                          ["receipt", nowhere, "--out", self.path("r")], ["bench", "cpu", nowhere]):
            self.check_refused(run(*arguments), 2, "not_found", nowhere)
        self.check_json_refused(run("inspect", nowhere, "--json"), 2, "not_found", file=nowhere)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_file_is_no_checkpoint_folder(self):
        file = os.path.join(SCRIBE, "config.json")
        self.check_refused(run("inspect", file), 2, "not_found", file, "found a file")

    def test_bad_values_name_their_flag(self):
        for flag, value in (("--max-tokens", "-1"), ("--max-tokens", "many"), ("--max-tokens", "1.5"),
                            ("--temperature", "-1"), ("--temperature", "nan"),
                            ("--temperature", "hot"), ("--top-k", "-3"), ("--top-p", "1.5"),
                            ("--top-p", "-0.1"), ("--min-p", "2"), ("--seed", "-1"),
                            ("--seed", "18446744073709551616"), ("--kv", "int4"),
                            ("--device", "tpu"), ("--embedding", "disk"),
                            ("--embedding", "mapped"), ("--threads", "-1"),
                            ("--vram", "24GiB"), ("--vram", "24GB"), ("--vram", "0"),
                            ("--kept", "-1"), ("--streams", "0"),
                            ("--threads", "two"), ("--threads", "99999"), ("--tier", "sse9")):
            done = run("run", SCRIBE, "--ids", "1", flag, value, "--json")
            error = json.loads(done.stdout)["error"]
            self.assertEqual((done.returncode, error["where"].get("flag")), (2, flag), error)
            self.assertIn(error["code"], ("out_of_range", "unsupported"))

    def test_a_device_that_is_not_there_names_its_flag(self):
        # No backend in this build, no driver, or no device that is shown: each says what would help.
        done = subprocess.run([PROGRAM, "run", SCRIBE, "--ids", "1", "--device", "cuda", "--json"],
                              env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}, check=False,
                              stdout=subprocess.PIPE, text=True)
        error = json.loads(done.stdout)["error"]
        self.assertEqual((done.returncode, error["where"].get("flag")), (2, "--device"), error)
        self.assertEqual(error["code"], "unsupported")
        self.assertIn("--device cpu", error["message"])

    def test_prompt_and_ids_exclude_each_other(self):
        self.check_refused(run("run", SCRIBE, "--prompt", "x", "--ids", "1"), 2, "out_of_range",
                           "--prompt", "both")
        self.check_refused(run("run", SCRIBE), 2, "out_of_range", "--prompt", "neither")
        self.check_refused(run("run", SCRIBE, "--ids", "1", "--chat"), 2, "out_of_range", "--chat")

    def test_ids_that_are_none(self):
        for ids in ("", "1,,2", "1,", ",1", "1 2", "-1", "one", "1.0", "99999999999"):
            self.check_refused(run("run", SCRIBE, "--ids", ids), 2, "out_of_range", "--ids")

    def test_ids_outside_the_vocabulary(self):
        self.check_refused(run("run", SCRIBE, "--ids", "1,4096"), 2, "out_of_range", "--ids", "4096")
        out = self.path("out.safetensors")
        self.check_refused(run("logits", SCRIBE, "--ids", "4096", "--out", out), 2, "out_of_range",
                           "--ids")
        self.assertEqual(os.listdir(self.folder), [])

    def test_more_ids_than_positions(self):
        ids = ",".join(["1"] * 4097)
        self.check_refused(run("run", SCRIBE, "--ids", ids), 2, "out_of_range", "--ids", "4096")

    def test_a_prompt_without_a_token(self):
        self.check_refused(run("run", SCRIBE, "--prompt", ""), 2, "out_of_range", "--prompt")
        self.check_json_refused(run("run", SCRIBE, "--prompt", "", "--json"), 2, "out_of_range",
                                flag="--prompt")

    def test_a_prompt_that_is_not_utf8(self):
        self.check_refused(run("run", SCRIBE, "--prompt", b"\xff\xfe".decode("latin-1").encode(
            "latin-1").decode("utf-8", "surrogateescape")), 2, "malformed", "--prompt")

    def test_text_without_a_tokenizer(self):
        self.check_refused(run("run", PRISM, "--prompt", "x"), 2, "not_found", "tokenizer.json")


class BadCheckpoints(Case):
    def copy(self):
        folder = self.path("model")
        shutil.copytree(SCRIBE, folder)
        os.remove(os.path.join(folder, "golden.safetensors"))
        return folder

    def test_a_missing_file_is_named(self):
        folder = self.copy()
        os.remove(os.path.join(folder, "config.json"))
        for arguments in (["inspect", folder], ["run", folder, "--ids", "1"],
                          ["receipt", folder, "--out", self.path("r")]):
            self.check_refused(run(*arguments), 1, "not_found", "config.json")
        self.assertFalse(os.path.exists(self.path("r")))

    def test_broken_json_names_its_byte(self):
        folder = self.copy()
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            file.write('{"model_type": "qwen3_5", }')
        done = run("inspect", folder, "--json")
        self.check_json_refused(done, 1, "malformed", file=os.path.join(folder, "config.json"))
        self.assertIn("byte", json.loads(done.stdout)["error"]["where"])

    def test_a_cut_file_names_itself(self):
        folder = self.copy()
        file = os.path.join(folder, "model.safetensors")
        os.truncate(file, os.path.getsize(file) - 1)
        self.check_refused(run("inspect", folder), 1, "malformed", file)
        out = self.path("out.safetensors")
        self.check_refused(run("logits", folder, "--ids", "1", "--out", out), 1, "malformed", file)
        self.assertFalse(os.path.exists(out))

    def test_a_scale_that_is_not_finite_names_its_tensor(self):
        folder = self.copy()
        path = os.path.join(folder, "model.safetensors")
        with open(path, "r+b") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            header = json.loads(file.read(size))
            name = next(key for key in header if key.endswith("mlp.up_proj.suh"))
            file.seek(8 + size + header[name]["data_offsets"][0])
            file.write(b"\x00\x7e")
        self.assertEqual(run("inspect", folder).returncode, 0)  # headers are fine
        self.check_refused(run("run", folder, "--ids", "1"), 1, "out_of_range", name)

    def test_another_family_is_refused_by_name(self):
        folder = self.copy()
        path = os.path.join(folder, "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config["model_type"] = "qwen3_5_moe"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.check_refused(run("inspect", folder), 1, "unsupported", "qwen3_5_moe")


class Outputs(Case):
    def test_an_output_that_is_a_folder(self):
        self.check_refused(run("logits", SCRIBE, "--ids", "1", "--out", self.folder), 2,
                           "out_of_range", self.folder, "--out")
        self.assertEqual(os.listdir(self.folder), [])

    def test_an_output_in_a_folder_that_is_not_there(self):
        out = self.path("no/such/file")
        self.check_refused(run("logits", SCRIBE, "--ids", "1", "--out", out), 3, "io", out)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_receipt_folder_that_is_a_file(self):
        out = self.path("file")
        with open(out, "w", encoding="utf-8") as file:
            file.write("mine")
        self.check_refused(run("receipt", SCRIBE, "--level", "L0", "--out", out), 3, "io", out)
        with open(out, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")

    def test_a_full_disk_leaves_the_old_file(self):
        out = self.path("out.safetensors")
        with open(out, "w", encoding="utf-8") as file:
            file.write("old")
        done = subprocess.run(["sh", "-c", 'trap "" XFSZ; ulimit -f 8; exec "$@"', "sh", PROGRAM,
                               "logits", SCRIBE, "--ids", IDS, "--out", out],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.check_refused(done, 3, "io", out)
        self.assertEqual(os.listdir(self.folder), ["out.safetensors"])
        with open(out, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")

    def test_a_full_stdout_is_no_success(self):
        for arguments in (["inspect", SCRIBE], ["run", SCRIBE, "--ids", "1", "--max-tokens", "4"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE,
                                      check=False)
            self.check_refused(done, 3, "io", "stdout")


class Inspect(Case):
    def test_text_and_json_speak_of_the_same_checkpoint(self):
        for model, exl3, plain in ((SCRIBE, 8 * 3 + 6 * 3 + 2 * 4 + 1, 12), (PRISM, None, None)):
            text = self.check_ok(run("inspect", model))
            self.assertIn("by category", text)
            value = json.loads(self.check_ok(run("inspect", model, "--json")))
            jsonschema.validate(value, schema("inspect"))
            totals = value["totals"]
            self.assertEqual(totals["used_bytes"],
                             sum(x["bytes"] for x in value["linears"] + value["plain"]))
            self.assertEqual(totals["bytes"], totals["used_bytes"] +
                             sum(part["bytes"] for part in value["unused"]))
            self.assertEqual(totals["used_bytes"], sum(x["bytes"] for x in value["categories"]))
            if exl3 is not None:
                kinds = [linear["kind"] for linear in value["linears"]]
                self.assertEqual((kinds.count("exl3"), kinds.count("plain")), (exl3, plain))
                self.assertEqual({x.get("codebook") for x in value["linears"]},
                                 {"3inst", "mcg", "mul1", None})


class Run(Case):
    def generate(self, *arguments):
        value = json.loads(self.check_ok(run("run", SCRIBE, *arguments, "--json")))
        jsonschema.validate(value, schema("run"))
        return value

    def test_streams_the_text_that_json_holds(self):
        arguments = ("--prompt", "In the beginning God created", "--max-tokens", "24")
        value = self.generate(*arguments)
        self.assertEqual(len(value["ids"]), 24)
        self.assertEqual(value["stop"], "max_tokens")
        self.assertGreater(len(set(value["ids"])), 5)
        self.assertEqual(self.check_ok(run("run", SCRIBE, *arguments)), value["text"] + "\n")

    def test_greedy_ids_are_the_references_where_its_margin_allows(self):
        tensor = read_tensors(os.path.join(SCRIBE, "golden.safetensors"))
        compared = 0
        for index in range(5):
            ids = ",".join(map(str, tensor(f"prompt{index}", "i")))
            greedy, margin = tensor(f"greedy{index}", "i"), tensor(f"margin{index}", "f")
            sure = next((i for i, m in enumerate(margin) if m <= 0.1), len(margin))
            value = self.generate("--ids", ids, "--max-tokens", "96", "--ignore-stop")
            self.assertEqual(value["ids"][:sure], list(greedy[:sure]))
            compared += sure
        self.assertGreater(compared, 50)

    def test_threads_tier_and_seed(self):
        arguments = ("--ids", IDS, "--temperature", "1", "--max-tokens", "24", "--ignore-stop")
        first = self.generate(*arguments, "--seed", "1")["ids"]
        self.assertEqual(self.generate(*arguments, "--seed", "1", "--threads", "1",
                                       "--tier", "scalar")["ids"], first)
        self.assertNotEqual(self.generate(*arguments, "--seed", "2")["ids"], first)
        self.assertEqual(self.generate(*arguments, "--seed", "2", "--top-k", "1")["ids"],
                         self.generate("--ids", IDS, "--max-tokens", "24", "--ignore-stop")["ids"])

    def test_no_tokens_wanted(self):
        value = self.generate("--ids", IDS, "--max-tokens", "0")
        self.assertEqual((value["ids"], value["text"], value["prompt_tokens"]), ([], "", 4))

    def test_ids_need_no_tokenizer(self):
        value = json.loads(self.check_ok(run("run", PRISM, "--ids", "1,2,3", "--max-tokens", "4",
                                             "--json")))
        jsonschema.validate(value, schema("run"))
        self.assertIsNone(value["text"])
        text = self.check_ok(run("run", PRISM, "--ids", "1,2,3", "--max-tokens", "4"))
        self.assertEqual(text, " ".join(map(str, value["ids"])) + "\n")

    def test_chat_asks_as_a_user(self):
        plain = self.generate("--prompt", "Hello", "--max-tokens", "1")
        chat = self.generate("--prompt", "Hello", "--max-tokens", "1", "--chat")
        self.assertGreater(chat["prompt_tokens"], plain["prompt_tokens"] + 3)

    def test_the_end_of_the_context_stops(self):
        ids = ",".join(["5"] * 4095)
        value = self.generate("--ids", ids, "--max-tokens", "9", "--ignore-stop")
        self.assertEqual((value["stop"], len(value["ids"])), ("context", 2))


class Logits(Case):
    def test_writes_one_float_row_a_position(self):
        out = self.path("out.safetensors")
        self.assertEqual(self.check_ok(run("logits", SCRIBE, "--ids", IDS, "--out", out)), "")
        header, data = read_file(out)
        self.assertEqual(header, {"logits": {"dtype": "F32", "shape": [4, 4096],
                                             "data_offsets": [0, 65536]}})
        self.assertEqual(len(data), 65536)
        self.assertEqual(os.listdir(self.folder), ["out.safetensors"])
        row = struct.unpack("<4096f", data[-16384:])
        greedy = json.loads(self.check_ok(run("run", SCRIBE, "--ids", IDS, "--max-tokens", "1",
                                              "--json")))["ids"][0]
        self.assertEqual(max(range(4096), key=lambda i: row[i]), greedy)

    def test_golden_logits_within_the_registered_tolerance(self):
        with open(f"{SOURCE}/docs/tolerances.json", encoding="utf-8") as file:
            allowed = {x["id"]: x["value"] for x in json.load(file)["tolerances"]}
        golden = read_tensors(os.path.join(SCRIBE, "golden.safetensors"))
        compared = 0
        for index in (0, 2):
            ids = golden(f"prompt{index}", "i") + golden(f"greedy{index}", "i")
            out = self.path(f"{index}.safetensors")
            self.check_ok(run("logits", SCRIBE, "--ids", ",".join(map(str, ids)), "--out", out))
            expected, actual = golden(f"logits{index}", "f"), read_tensors(out)("logits", "f")
            self.assertEqual(len(actual), len(expected))
            for start in range(0, len(expected), 4096):
                truth, ours = expected[start:start + 4096], actual[start:start + 4096]
                mean = sum(truth) / 4096
                spread = sum((t - mean) ** 2 for t in truth)
                drift = sum((t - o) ** 2 for t, o in zip(truth, ours))
                self.assertLessEqual((drift / spread) ** 0.5, allowed["scribe-logits-rms-bf16"])
                compared += 1
        self.assertEqual(compared, 101 + 113)

    def test_threads_and_tier_change_no_byte_and_the_cache_type_does(self):
        files = []
        for index, flags in enumerate((["--threads", "1"], ["--threads", "2"],
                                       ["--threads", "1", "--tier", "scalar"], ["--kv", "fp8"])):
            out = self.path(str(index))
            self.check_ok(run("logits", SCRIBE, "--ids", IDS, "--out", out, *flags))
            files.append(read_file(out)[1])
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0], files[2])
        self.assertNotEqual(files[0], files[3])


if __name__ == "__main__":
    unittest.main()
