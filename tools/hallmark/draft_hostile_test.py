# SPDX-License-Identifier: Apache-2.0
"""Drafters and prompts that cannot be used: each refused by name, with its exit code, before
anything is written; and faults that end one reply, or the drafting, and nothing else."""
import json
import os
import shutil
import struct
import unittest

import jsonschema

from cli_test import IDS, PRISM, SCRIBE, SOURCE, run, schema
from drafting_test import DRAFTER, Drafting

NAN, HUGE = b"\xc0\x7f", b"\x7f\x7f"  # bf16


def patch(path, name, offset, value):
    """Overwrites bytes of a tensor, from its end if the offset is negative."""
    with open(path, "r+b") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        begin, end = json.loads(file.read(size))[name]["data_offsets"]
        file.seek(8 + size + (begin if offset >= 0 else end) + offset)
        file.write(value)


class Hostile(Drafting):
    def copy(self, folder, *without):
        target = self.path("copy")
        shutil.copytree(folder, target, ignore=lambda *_: (*without, "golden.safetensors",
                                                           "golden_long.safetensors"))
        return target, os.path.join(target, "model.safetensors")

    def check_both_refused(self, drafter, exit_code, code, *parts, model=SCRIBE):
        out = self.path("out.safetensors")
        for command in (("run", model, "--ids", "1"),
                        ("draft", model, "--ids", "1", "--anchor", "2", "--out", out)):
            done = run(*command, "--drafter", drafter)
            self.check_refused(done, exit_code, code, *parts)
            self.assertEqual(done.stdout, b"")
        self.assertFalse(os.path.exists(out))


class Drafters(Hostile):
    def test_one_for_another_model(self):
        other = os.path.join(SOURCE, "golden/models/prism-dflash")
        self.check_both_refused(other, 1, "mismatch", os.path.join(other, "config.json"))
        self.check_both_refused(DRAFTER, 1, "mismatch", os.path.join(DRAFTER, "config.json"),
                                model=PRISM)

    def test_a_cut_file(self):
        folder, file = self.copy(DRAFTER)
        os.truncate(file, os.path.getsize(file) - 1)
        self.check_both_refused(folder, 1, "malformed", file)

    def test_a_missing_file(self):
        for name in ("config.json", "model.safetensors"):
            folder, _ = self.copy(DRAFTER, name)
            self.check_both_refused(folder, 1, "not_found", folder)
            shutil.rmtree(folder)

    def test_a_codebook_that_is_not_finite(self):
        for name in ("candidate_selector.predecessor_codebook",
                     "candidate_selector.successor_codebook"):
            folder, file = self.copy(DRAFTER)
            patch(file, name, -2, NAN)
            self.check_both_refused(folder, 1, "out_of_range", name, file)
            shutil.rmtree(folder)

    def test_a_name_of_nothing(self):
        for name in (self.path("nowhere"), os.path.join(DRAFTER, "config.json"), ""):
            self.check_both_refused(name, 2, "not_found", "--drafter", name)
        self.check_json_refused(run("run", SCRIBE, "--ids", "1", "--drafter", "", "--json"), 2,
                                "not_found", flag="--drafter")

    def test_one_that_fails_half_way_changes_no_token(self):
        folder, file = self.copy(DRAFTER)
        patch(file, "norm.weight", 0, HUGE * 256)  # finite, until it is used
        arguments = ("--ids", IDS, "--max-tokens", "16", "--window", "7", "--copy-match", "0")
        whole = self.generate(*arguments, "--drafter", DRAFTER)
        self.assertNotIn("draft_error", whole)
        done = run("run", SCRIBE, *arguments, "--drafter", folder, "--json")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode(),
                         r"^hallmark: warning: went on without its drafter: [^\n]+\n$")
        value = json.loads(done.stdout)
        jsonschema.validate(value, schema("run"))
        self.assertRegex(value["draft_error"], "^out_of_range: ")
        self.assertEqual((value["ids"], value["drafted"], value["rounds"]), (whole["ids"], 0, 15))
        done = run("run", SCRIBE, *arguments, "--drafter", folder)
        self.assertEqual((done.returncode, done.stdout.decode()), (0, whole["text"] + "\n"))
        self.assertIn(b"hallmark: warning: ", done.stderr)
        out = self.path("out.safetensors")
        self.check_refused(run("draft", SCRIBE, "--ids", "1", "--anchor", "2", "--drafter", folder,
                               "--out", out), 1, "out_of_range")
        self.assertFalse(os.path.exists(out))


class Flags(Hostile):
    def check_flag(self, exit_code, code, flag, *arguments, command="run"):
        out = () if command == "run" else ("--anchor", "2", "--out", self.path("out"))
        self.check_refused(run(command, SCRIBE, "--ids", "1", *out, *arguments), exit_code, code,
                           flag)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_bad_values_name_their_flag(self):
        for flag, values in (("--drafter-weights", ("", "bf16", "4")),
                             ("--draft-vocab", ("", "1", "1:", ":1", "1:1", "2:1", "-1:4", "0:1,",
                                                "0:1,,2:3", "0:1;2:3", "0x1:2", "0:4097",
                                                "0:99999999999999999999", "0:10,5000:5001"))):
            for value in values:
                for command in ("run", "draft"):
                    self.check_flag(2, "out_of_range", flag, "--drafter", DRAFTER, flag, value,
                                    command=command)
        for flag, values in (("--copy-match", ("", "-1", "65", "some")),
                             ("--window", ("", "-1", "128", "1.5")),
                             ("--streams", ("", "0", "9", "-1", "two")),
                             ("--context", ("", "-1", "99999999999999999", "9223372036854775807"))):
            for value in values:
                self.check_flag(2, "out_of_range", flag, flag, value)

    def test_a_receipt_names_the_flag_too(self):
        out = self.path("receipts")
        done = run("receipt", SCRIBE, "--drafter", DRAFTER, "--draft-vocab", "0:4097", "--out", out)
        self.check_refused(done, 2, "out_of_range", "--draft-vocab")
        self.assertFalse(os.path.exists(out))

    def test_flags_that_would_do_nothing(self):
        self.check_flag(2, "out_of_range", "--no-draft", "--no-draft")
        self.check_flag(2, "out_of_range", "--drafter-weights", "--drafter-weights", "4bit")
        self.check_flag(2, "out_of_range", "--draft-vocab", "--draft-vocab", "0:1024")
        idle = ("--window", "4", "--copy-match", "0")
        self.check_flag(2, "out_of_range", "--window", *idle)
        self.check_flag(2, "out_of_range", "--window", *idle, "--drafter", DRAFTER, "--no-draft")
        self.check_ok(run("run", SCRIBE, "--ids", "1", "--max-tokens", "2", "--window", "4"))

    def test_anchors_outside_the_vocabulary(self):
        for anchor in ("4096", "-1", "x", ""):
            self.check_refused(run("draft", SCRIBE, "--drafter", DRAFTER, "--ids", "1",
                                   "--anchor", anchor, "--out", self.path("out")), 2,
                               "out_of_range", "--anchor")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_reply_longer_than_the_context(self):
        ids = ",".join(["7"] * 200)
        self.check_refused(run("run", SCRIBE, "--ids", ids, "--max-tokens", "57", "--context",
                               "256"), 2, "resource", "--context", "257", "256")
        self.check_ok(run("run", SCRIBE, "--ids", ids, "--max-tokens", "56", "--context", "256"))
        path = self.file("p.json", [[1], [7] * 200])
        done = run("run", SCRIBE, "--prompts", path, "--max-tokens", "57", "--context", "256")
        self.check_refused(done, 2, "resource", "--context")
        self.assertEqual(done.stdout, b"")  # no prompt ran


class PromptFiles(Hostile):
    def check_file(self, content, code, name="p.txt", **where):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(content)
        done = run("run", SCRIBE, "--prompts", path, "--json")
        self.check_json_refused(done, 2, code, file=path, flag="--prompts", **where)

    def test_files_without_a_prompt(self):
        self.check_file(b"", "out_of_range")
        self.check_file(b"[]", "out_of_range", "p.json")
        self.check_file(b"", "malformed", "p.json")

    def test_empty_prompts(self):
        self.check_file(b"\n", "out_of_range", byte=0)
        self.check_file(b"one\n\nthree\n", "out_of_range", byte=4)
        self.check_file(b"one\r\n\r\n", "out_of_range", byte=5)
        self.check_file(b'["one", ""]', "out_of_range", "p.json", pointer="/1")
        self.check_file(b'["one", []]', "out_of_range", "p.json", pointer="/1")

    def test_ids_that_are_none(self):
        for ids, pointer in (("[[1], [4096]]", "/1"), ("[[1], [2, -1]]", "/1/1"),
                             ("[[1.0]]", "/0/0"), ('[["1"]]', "/0/0"), ("[[4294967297]]", "/0/0"),
                             ("[[true]]", "/0/0")):
            code = "out_of_range" if "4096" in ids else "malformed"
            self.check_file(ids.encode(), code, "p.json", pointer=pointer)
        too_many = json.dumps([[1], [1] * 4097]).encode()
        self.check_file(too_many, "out_of_range", "p.json", pointer="/1")

    def test_json_of_another_form(self):
        for text in (b"{}", b'"one"', b"1"):
            self.check_file(text, "malformed", "p.json")
        for text in (b"[1]", b"[null]", b'[{"text": "one"}]'):
            self.check_file(text, "malformed", "p.json", pointer="/0")
        self.check_file(b'["one", ]', "malformed", "p.json", byte=8)

    def test_text_that_is_not_utf8(self):
        self.check_file(b"one\n\xff\xfe\n", "malformed", byte=4)

    def test_a_byte_order_mark_is_none_of_the_first_prompt(self):
        self.check_file(b"\xef\xbb\xbf", "out_of_range")
        self.check_file(b"\xef\xbb\xbf\r\nsecond\r\n", "out_of_range", byte=3)
        replies = []
        for mark in (b"", b"\xef\xbb\xbf"):
            with open(self.path("p.txt"), "wb") as file:
                file.write(mark + b"In the beginning\n\xef\xbb\xbfsecond\n")
            done = run("run", SCRIBE, "--prompts", self.path("p.txt"), "--max-tokens", "8", "--json")
            self.assertEqual(done.returncode, 0)
            replies.append([(reply["ids"], reply["prompt_tokens"])
                            for reply in json.loads(done.stdout)["replies"]])
        self.assertEqual(*replies)

    def test_a_file_that_cannot_be_read(self):
        self.check_refused(run("run", SCRIBE, "--prompts", self.path("nowhere")), 2, "not_found",
                           "--prompts", "nowhere")
        self.check_refused(run("run", SCRIBE, "--prompts", self.folder), 2, "unsupported",
                           "--prompts", self.folder)
        self.check_refused(run("run", SCRIBE, "--prompts", ""), 2, "not_found", "--prompts")

    def test_more_than_one_source(self):
        path = self.file("p.txt", "one")
        self.check_refused(run("run", SCRIBE, "--prompts", path, "--ids", "1"), 2, "out_of_range",
                           "--prompt", "both --ids and --prompts")
        self.check_refused(run("run", SCRIBE, "--prompts", path, "--ids", "1", "--prompt", "x"), 2,
                           "out_of_range", "--prompt, --ids and --prompts")

    def test_a_conversation_of_ids(self):
        path = self.file("p.json", ["one", [1, 2]])
        done = run("run", SCRIBE, "--prompts", path, "--chat", "--json")
        self.check_json_refused(done, 2, "out_of_range", file=path, flag="--chat", pointer="/1")


class OneOfMany(Hostile):
    def test_a_reply_that_fails_leaves_the_others(self):
        folder, file = self.copy(SCRIBE)
        patch(file, "model.language_model.embed_tokens.weight", 777 * 512, NAN)  # of id 777
        path = self.file("p.json", [[57, 318], [57, 777], [1033, 57]])
        arguments = ("--prompts", path, "--max-tokens", "12", "--ignore-stop", "--drafter", DRAFTER)
        whole = self.generate(*arguments)["replies"]
        done = run("run", folder, *arguments, "--json")
        self.check_refused(done, 1, "out_of_range", "reply 2: ")
        value = json.loads(done.stdout)
        jsonschema.validate(value, schema("run"))
        self.assertEqual(value["replies"][1]["error"]["code"], "out_of_range")
        for index in (0, 2):
            self.assertNotIn(777, whole[index]["ids"])
            self.assertEqual(value["replies"][index]["ids"], whole[index]["ids"])
        done = run("run", folder, *arguments)
        self.check_refused(done, 1, "out_of_range", "reply 2: ")
        self.assertEqual(done.stdout.decode(), f"=== reply 1 of 3 ===\n{whole[0]['text']}\n\n"
                                               "=== reply 2 of 3 ===\n\n\n"
                                               f"=== reply 3 of 3 ===\n{whole[2]['text']}\n")

        done = run("run", folder, "--ids", "57,777", "--max-tokens", "12")
        self.check_refused(done, 1, "out_of_range")
        self.assertEqual(done.stdout, b"")
        self.check_json_refused(run("run", folder, "--ids", "57,777", "--json"), 1, "out_of_range")


if __name__ == "__main__":
    unittest.main()
