# SPDX-License-Identifier: Apache-2.0
"""hallmark validate as a vendor meets it: for each named fault the first line names it and its place,
the exit code is the verdict's, and the JSON keeps to its schema."""
import hashlib
import json
import os
import re
import shutil
import struct
import unittest

import jsonschema

from cli_test import SCRIBE, SOURCE, Case, run, schema

DRAFTER = os.path.join(os.path.dirname(SCRIBE), "scribe-11m-dflash2")
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
TEXT = "model.language_model."
DOWN = TEXT + "layers.0.mlp.down_proj"


class Checkpoint:
    """A copy of the golden model in a folder, whose files can be changed."""

    def __init__(self, folder, source=SCRIBE):
        self.folder = folder
        os.mkdir(folder)
        for name in os.listdir(source):
            if name.endswith(".json") or name == WEIGHTS:
                shutil.copyfile(os.path.join(source, name), os.path.join(folder, name))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def document(self, name, change):
        with open(self.path(name), encoding="utf-8") as file:
            value = json.load(file)
        change(value)
        self.write(name, json.dumps(value))

    def tensors(self):
        with open(self.path(WEIGHTS), "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            return json.loads(file.read(size)), file.read()

    def write_tensors(self, name, header, data):
        """The tensors of `header`, whose offsets are those in `data`, in the order of these."""
        names = sorted((n for n in header if n != "__metadata__"),
                       key=lambda n: header[n]["data_offsets"])
        out, body = {}, b""
        for tensor in names:
            begin, end = header[tensor]["data_offsets"]
            out[tensor] = dict(header[tensor], data_offsets=[len(body), len(body) + end - begin])
            body += data[begin:end]
        text = json.dumps(out).encode()
        self.write(name, struct.pack("<Q", len(text)) + text + body)

    def retensor(self, change):
        header, data = self.tensors()
        change(header)
        self.write_tensors(WEIGHTS, header, data)

    def poke(self, tensor, index, data):
        """Puts bytes into a tensor's data; returns their place in the file."""
        with open(self.path(WEIGHTS), "r+b") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            at = 8 + size + json.loads(file.read(size))[tensor]["data_offsets"][0] + index
            file.seek(at)
            file.write(data)
            return at

    def shard(self):
        header, data = self.tensors()
        header.pop("__metadata__", None)
        names = sorted(header)
        halves = (names[:len(names) // 2], names[len(names) // 2:])
        for shard, half in zip(SHARDS, halves):
            self.write_tensors(shard, {name: header[name] for name in half}, data)
        os.remove(self.path(WEIGHTS))
        self.write(INDEX, json.dumps({"weight_map": {
            name: shard for shard, half in zip(SHARDS, halves) for name in half}}))
        return halves


class Help(Case):
    def test_it_names_no_flag_that_does_not_exist_and_shows_each_that_vendors_need(self):
        words = self.check_ok(run("validate", "--help"))
        examples = words.split("Examples:\n")[1]
        for flag in ("--step", "--drafter", "--reference", "--windows", "--digests", "--report",
                     "--json"):
            self.assertIn(flag, examples)
        for flag in set(re.findall(r"(?<![\w-])--[a-z-]+", words)):
            self.assertNotIn("not expected", run("validate", SCRIBE, flag).stderr.decode(), flag)


class Guide(Case):
    def test_it_shows_what_the_program_prints(self):
        with open(os.path.join(SOURCE, "docs/guide/validate.md"), encoding="utf-8") as file:
            guide = file.read()
        done = run("validate", "golden/models/scribe-11m-exl3", cwd=SOURCE)
        self.assertEqual(done.stdout.decode(), guide.split("```\n")[1])


class Verdicts(Case):
    def validate(self, *arguments):
        done = run("validate", *arguments)
        self.assertEqual(done.stderr, b"")
        return done.returncode, done.stdout.decode()

    def test_the_golden_model_and_its_drafter_are_accepted(self):
        code, text = self.validate(SCRIBE, "--drafter", DRAFTER)
        self.assertEqual(code, 0)
        self.assertRegex(text, r"\nstructure: accepted \(2 drafter files, ")
        self.assertRegex(text, r"\nnumbers: accepted \(\d+ bytes, \d+ drafter bytes, ")
        self.assertRegex(text, r"\nbehaviour: accepted \(42 cases, 488 finite rows, 111 text tokens\)\n")
        self.assertRegex(text, r"\n  drafts: \d+ of \d+ accepted in \d+ ids\n")
        self.assertRegex(text, r"\n  resumed-equals-fresh: 24 cases, \d{5,} values\n")
        self.assertRegex(text, r"\nAccepted: \S+ conforms \(\d+ warnings, \d+ notes?\)\.\n$")

    def test_json_keeps_to_its_schema_whatever_the_verdict(self):
        broken = Checkpoint(self.path("broken"))
        broken.document("config.json", lambda c: c.update(model_type="llama"))
        expected = ((0, "accepted", (SCRIBE, "--drafter", DRAFTER)),
                    (1, "rejected", (broken.folder,)),
                    (0, "accepted", (SCRIBE, "--step", "structure")),
                    (0, "accepted", (SCRIBE, "--step", "numbers")))
        for code, verdict, arguments in expected:
            got, text = self.validate(*arguments, "--json")
            value = json.loads(text)
            jsonschema.validate(value, schema("validation"))
            self.assertEqual((got, value["verdict"]), (code, verdict))
            counts = {"errors": 0, "warnings": 0, "notes": 0}
            for step in value["steps"]:
                if step["verdict"] == "accepted":
                    self.assertGreater(min(step["compared"].values()), 0)
                if step["step"] == "behaviour":
                    self.assertEqual(step["compared"]["cases"], len(step["facts"]["cases"]))
                for finding in step["findings"]:
                    counts[finding["severity"] + "s"] += 1
            self.assertEqual(value["counts"], counts)
        self.assertEqual(json.loads(self.validate(broken.folder, "--json")[1])["not_run"],
                         ["numbers", "behaviour"])

    def test_a_step_alone(self):
        for step, other in (("structure", "numbers"), ("numbers", "structure")):
            _, text = self.validate(SCRIBE, "--step", step)
            self.assertIn(f"\n{step}: ", text)
            self.assertNotIn(f"\n{other}: ", text)

    def test_a_command_line_at_fault(self):
        self.check_refused(run("validate", SCRIBE, "--step", "bogus"), 2, "not_found", "--step",
                           "structure, numbers")
        self.check_refused(run("validate", self.path("nowhere")), 2, "not_found", "DIR")
        self.check_refused(run("validate", SCRIBE, "--drafter", self.path("nowhere")), 2,
                           "not_found", "--drafter")

    def test_what_could_not_be_read_is_never_accepted(self):
        model = Checkpoint(self.path("model"))
        os.remove(model.path("config.json"))
        os.symlink("config.json", model.path("config.json"))
        code, text = self.validate(model.folder)
        self.assertEqual(code, 3)
        self.assertTrue(text.startswith("error: unreadable-file: "), text)
        self.assertIn("\nUndecided: ", text)

    def test_a_folder_that_opens_for_nobody_leaves_numbers_open(self):
        model = Checkpoint(self.path("model"))
        os.remove(model.path("config.json"))
        self.assertEqual(self.validate(model.folder, "--step", "numbers")[0], 3)
        self.assertEqual(self.validate(model.folder)[0], 1)


class Faults(Case):
    """Twenty and more faults by name: check, then the parts of its place."""

    def expect(self, model, check, *place, code=1, arguments=()):
        done = run("validate", model.folder, *arguments)
        first = done.stdout.decode().split("\n")[0]
        self.assertEqual(done.returncode, code, first)
        self.assertTrue(first.startswith(f"error: {check}: "), first)
        for part in place:
            self.assertIn(part, first)

    def model(self):
        return Checkpoint(self.path("model"))

    def test_a_shard_deleted(self):
        model = self.model()
        _, second = model.shard()
        os.remove(model.path(SHARDS[1]))
        self.expect(model, "shard-missing", f"/{SHARDS[1]}", f"tensor {second[0]}",
                    f"{len(second)} tensors")

    def test_a_shard_cut_short(self):
        model = self.model()
        model.shard()
        size = os.path.getsize(model.path(SHARDS[0]))
        os.truncate(model.path(SHARDS[0]), size // 2)
        self.expect(model, "shard-truncated", f"/{SHARDS[0]}", f"byte {size // 2}")

    def test_a_shard_of_no_bytes(self):
        model = self.model()
        model.shard()
        model.write(SHARDS[0], b"")
        self.expect(model, "empty-file", f"/{SHARDS[0]}")

    def test_a_shard_that_git_lfs_did_not_fetch(self):
        model = self.model()
        model.write(WEIGHTS, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
        self.expect(model, "pointer-file", f"/{WEIGHTS}")

    def test_a_download_under_way(self):
        model = self.model()
        model.write(WEIGHTS + ".aria2", "x")
        self.expect(model, "unfinished-download", f"/{WEIGHTS}.aria2")

    def test_a_page_in_place_of_a_file(self):
        model = self.model()
        model.write(WEIGHTS, "<!DOCTYPE html>")
        self.expect(model, "not-the-file", f"/{WEIGHTS}")

    def test_an_index_that_lacks_tensors(self):
        model = self.model()
        first, _ = model.shard()
        model.document(INDEX, lambda i: i["weight_map"].pop(first[3]))
        self.expect(model, "index-incomplete", f"/{SHARDS[0]}", f"tensor {first[3]}")

    def test_an_index_of_another_pack(self):
        model = self.model()
        model.shard()
        model.document(INDEX, lambda i: i["weight_map"].update({"x.weight": SHARDS[1]}))
        self.expect(model, "index-stale", f"/{SHARDS[1]}", "tensor x.weight")

    def test_an_index_that_leaves_the_folder(self):
        model = self.model()
        first, _ = model.shard()
        model.document(INDEX, lambda i: i["weight_map"].update({first[0]: "../a.safetensors"}))
        self.expect(model, "index-entry", f"/{INDEX}", f"/weight_map/{first[0]}")

    def test_no_config(self):
        model = self.model()
        os.remove(model.path("config.json"))
        self.expect(model, "config-missing", "/config.json", "interrupted")

    def test_a_broken_config(self):
        model = self.model()
        model.write("config.json", "{\"a\":")
        self.expect(model, "json-broken", "/config.json", "byte 5")

    def test_another_family(self):
        model = self.model()
        model.document("config.json", lambda c: c.update(model_type="llama"))
        self.expect(model, "config-value", "/config.json", "/model_type", "llama")

    def test_a_number_that_the_engine_does_not_have(self):
        model = self.model()
        model.document("config.json", lambda c: c["text_config"].update(hidden_act="gelu"))
        self.expect(model, "config-value", "/text_config/hidden_act")

    def test_two_files_that_state_other_bits(self):
        model = self.model()
        model.document("quantization_config.json", lambda q: q.update(bits=2))
        self.expect(model, "quantization-disagrees", "/quantization_config.json", "/bits")

    def test_a_missing_tensor(self):
        model = self.model()
        os.remove(model.path("quantization_config.json"))
        model.retensor(lambda h: h.pop(TEXT + "norm.weight"))
        self.expect(model, "missing-tensor", f"tensor {TEXT}norm.weight")

    def test_a_tensor_of_another_type(self):
        model = self.model()
        model.retensor(lambda h: h[TEXT + "norm.weight"].update(dtype="I16"))
        self.expect(model, "tensor-form", f"/{WEIGHTS}", f"tensor {TEXT}norm.weight")

    def test_an_unknown_tensor(self):
        model = self.model()
        model.retensor(lambda h: h.update({"x.y": {"dtype": "U8", "shape": [2],
                                                   "data_offsets": [0, 2]}}))
        self.expect(model, "unknown-tensor", f"/{WEIGHTS}", "tensor x.y")

    def test_a_wrong_marker(self):
        model = self.model()
        at = model.poke(DOWN + ".mcg", 0, b"\0")
        self.expect(model, "tensor-form", f"/{WEIGHTS}", f"byte {at}", f"tensor {DOWN}.mcg",
                    "multiplier")

    def test_a_storage_list_of_another_pack(self):
        model = self.model()
        model.document("quantization_config.json",
                       lambda q: q["tensor_storage"][DOWN].update(bits_per_weight=2))
        self.expect(model, "storage-disagrees", "/quantization_config.json", "bits_per_weight",
                    f"tensor {DOWN}.trellis")

    def test_a_tokenizer_of_another_kind(self):
        model = self.model()
        model.document("tokenizer.json", lambda t: t.update(normalizer={"type": "NFKC"}))
        self.expect(model, "tokenizer-broken", "/tokenizer.json", "/normalizer")

    def test_a_stop_id_outside_the_vocabulary(self):
        model = self.model()
        model.write("generation_config.json", "{\"eos_token_id\": [4070, 4096]}")
        self.expect(model, "generation-value", "/generation_config.json", "/eos_token_id/1")

    def test_a_drafter_for_another_model(self):
        drafter = Checkpoint(self.path("drafter"), DRAFTER)
        drafter.document("config.json", lambda c: c.update(num_target_layers=9))
        self.expect(self.model(), "drafter-mismatch", "drafter/config.json", "/num_target_layers",
                    arguments=("--drafter", drafter.folder))

    def test_a_scale_that_is_not_a_number(self):
        model = self.model()
        at = model.poke(DOWN + ".suh", 10, b"\x00\x7e")
        done = run("validate", model.folder)
        first = done.stdout.decode().split("\n")[0]
        self.assertEqual(done.returncode, 1, first)
        self.assertTrue(first.startswith("error: "), first)
        self.assertIn(f"tensor {DOWN}.suh", first)
        self.assertIn(f"byte {at}", first)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Digests(Case):
    """What was judged, by name, size and SHA-256."""

    def judged(self, *arguments):
        done = run("validate", *arguments, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        value = json.loads(done.stdout)
        jsonschema.validate(value, schema("validation"))
        for file in value["files"]:
            folder = {"model": arguments[0], "drafter": DRAFTER}[file["folder"]]
            path = os.path.join(folder, file["name"])
            self.assertEqual(file["bytes"], os.path.getsize(path))
            if file["sha256"] is not None:
                self.assertEqual(file["sha256"], sha256(path), path)
        names = [(file["folder"], file["name"]) for file in value["files"]]
        self.assertEqual(names, sorted(set(names), key=lambda n: (n[0] != "model", n[1])))
        return value["digests"], {name: file["sha256"]
                                  for name, file in zip(names, value["files"])}

    def test_with_digests_every_file_has_one(self):
        model = Checkpoint(self.path("model"))
        model.shard()
        model.write("README.md", "---\nlicense: apache-2.0\n---\n")
        model.write("LICENSE", "text")
        model.write("chat_template.jinja", "{{ messages }}")
        model.write("generation_config.json", '{"eos_token_id": 4070}')
        digests, files = self.judged(model.folder, "--drafter", DRAFTER, "--digests", "--step",
                                     "structure", "--step", "numbers")
        self.assertEqual(digests, {"complete": True, "why": ""})
        self.assertEqual({name for part, name in files if part == "model"},
                         set(os.listdir(model.folder)) - {"prompts.json"})
        self.assertEqual({name for part, name in files if part == "drafter"},
                         {"config.json", WEIGHTS})
        self.assertNotIn(None, files.values())

    def test_without_them_shards_have_none_and_it_says_why(self):
        for steps in (("structure", "numbers"), ("structure",)):
            arguments = [part for step in steps for part in ("--step", step)]
            digests, files = self.judged(SCRIBE, *arguments)
            self.assertFalse(digests["complete"])
            self.assertIn("--digests", digests["why"])
            self.assertEqual([name for (_, name), value in files.items() if value is None],
                             [WEIGHTS])

    def test_the_numbers_step_alone_takes_those_of_shards(self):
        digests, files = self.judged(SCRIBE, "--step", "numbers", "--digests")
        self.assertEqual(list(files), [("model", WEIGHTS)])
        self.assertTrue(digests["complete"])

    def test_digests_without_the_numbers_step_are_refused(self):
        self.check_refused(run("validate", SCRIBE, "--step", "structure", "--digests"), 2,
                           "out_of_range", "--digests", "numbers")

    def test_the_text_and_the_page_have_them(self):
        page = self.path("r.html")
        done = run("validate", SCRIBE, "--step", "structure", "--step", "numbers", "--digests",
                   "--report", page)
        self.assertIn("\nfiles: 4, each with its SHA-256 in --json and --report\n",
                      done.stdout.decode())
        with open(page, encoding="utf-8") as file:
            self.assertIn(sha256(os.path.join(SCRIBE, WEIGHTS)), file.read())
        done = run("validate", SCRIBE, "--step", "structure")
        self.assertIn("\nfiles: 4, 1 without SHA-256: ", done.stdout.decode())


class Windows(Case):
    """--windows: each fault by file, line, byte and pointer, before any step runs."""

    def windows(self, text, *arguments, model=SCRIBE):
        path = self.path("windows.jsonl")
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path, run("validate", model, "--reference", model, "--windows", path, "--json",
                         *arguments)

    def test_a_file_at_fault_is_refused_by_its_line(self):
        good = '{"ids": [1, 2, 3]}\n'
        # One more id than the model has positions.
        long = json.dumps({"ids": [7] * 4097})
        for line, code, pointer, words in (
                ("[1, 2]", "malformed", None, "object"),
                ("", "malformed", None, "object"),
                ("nonsense", "malformed", None, "JSON"),
                ('{"ids": [1, 2]', "malformed", None, "JSON"),
                ('{"id": [1, 2]}', "malformed", "/ids", "ids"),
                ('{"ids": 7}', "malformed", "/ids", "array"),
                ('{"ids": []}', "malformed", "/ids", "id"),
                ('{"ids": [1, "2"]}', "malformed", "/ids/1", "whole number"),
                ('{"ids": [1, 2.5]}', "malformed", "/ids/1", "whole number"),
                ('{"ids": [1, true]}', "malformed", "/ids/1", "whole number"),
                ('{"ids": [4096]}', "out_of_range", "/ids/0", "4095"),
                ('{"ids": [0, -1]}', "out_of_range", "/ids/1", "4095"),
                ('{"ids": [18446744073709551615]}', "out_of_range", "/ids/0", "4095"),
                (long, "out_of_range", "/ids", "4096")):
            path, done = self.windows(good + line + "\n" + good)
            self.check_json_refused(done, 2, code, file=path, flag="--windows", pointer=pointer)
            error = json.loads(done.stdout)["error"]
            self.assertIn("line 2: ", error["message"])
            self.assertIn(words, error["message"])
            self.assertGreaterEqual(error["where"]["byte"], len(good))
            self.assertLessEqual(error["where"]["byte"], len(good) + len(line))

    def test_a_file_without_windows_is_refused(self):
        path, done = self.windows("")
        self.check_json_refused(done, 2, "malformed", file=path, flag="--windows")

    def test_a_file_that_is_not_there(self):
        done = run("validate", SCRIBE, "--reference", SCRIBE, "--windows", self.path("no"))
        self.check_refused(done, 2, "not_found", "--windows", self.path("no"))

    def test_windows_without_the_source_step_are_refused(self):
        path = self.path("windows.jsonl")
        for arguments in ((), ("--step", "numbers")):
            done = run("validate", SCRIBE, "--windows", path, *arguments)
            self.check_refused(done, 2, "out_of_range", "--windows", "source")


if __name__ == "__main__":
    unittest.main()
