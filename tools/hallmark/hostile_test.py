# SPDX-License-Identifier: Apache-2.0
"""Places and values that nobody gives by intent: links, pipes and devices where files are expected,
readers that leave, names that are no text, numbers that overflow. Each must end in one line that
says where, with its exit code, and with everything else as it was."""
import filecmp
import json
import os
import resource
import shutil
import stat
import struct
import subprocess
import unittest

from cli_test import PRISM, PROGRAM, SCRIBE, Case, read_file, run


class Places(Case):
    def test_an_output_that_is_no_plain_file_stays_what_it_is(self):
        os.mkfifo(self.path("pipe"))
        os.symlink("/dev/full", self.path("device"))
        for name in ("pipe", "device"):
            out = self.path(name)
            self.check_refused(run("logits", PRISM, "--ids", "1", "--out", out), 2, "out_of_range",
                               out, "--out")
        self.assertTrue(stat.S_ISFIFO(os.lstat(self.path("pipe")).st_mode))
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
        self.assertEqual(sorted(os.listdir(self.folder)), ["device", "pipe"])

    def test_an_output_link_is_followed(self):
        os.symlink("file", self.path("link"))
        self.check_refused(run("logits", PRISM, "--ids", "1", "--out", self.path("link")), 3, "io",
                           "link")
        with open(self.path("file"), "w", encoding="utf-8") as file:
            file.write("old")
        self.check_ok(run("logits", PRISM, "--ids", "1", "--out", self.path("link")))
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(read_file(self.path("file"))[0]["logits"]["shape"], [1, 1000])

    def test_an_output_that_is_an_input_stays_what_it_is(self):
        drafter = os.path.join(os.path.dirname(PRISM), "prism-dflash")
        model = shutil.copytree(PRISM, self.path("model"))
        other = shutil.copytree(drafter, self.path("drafter"))
        draft = ("draft", model, "--drafter", other, "--ids", "1", "--anchor", "2", "--out")
        os.symlink(os.path.join(model, "model.safetensors"), self.path("link"))
        for name in ("model/config.json", "model/model.safetensors", "link"):
            for command in (("logits", model, "--ids", "1", "--out"), draft):
                self.check_refused(run(*command, self.path(name)), 2, "out_of_range", name, "--out")
        self.check_refused(run(*draft, self.path("drafter/model.safetensors")), 2, "out_of_range",
                           "drafter/model.safetensors", "--out")
        for name in ("config.json", "model.safetensors"):
            for copy, source in ((model, PRISM), (other, drafter)):
                self.assertTrue(filecmp.cmp(os.path.join(copy, name), os.path.join(source, name),
                                            shallow=False))
        self.check_ok(run("logits", model, "--ids", "1", "--out", os.path.join(model, "out")))

    def test_an_output_that_may_not_grow_leaves_nothing(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
        drafter = os.path.join(os.path.dirname(PRISM), "prism-dflash")
        for arguments in (("logits", PRISM, "--ids", "1", "--out", self.path("out")),
                          ("draft", PRISM, "--drafter", drafter, "--ids", "1", "--anchor", "2",
                           "--out", self.path("out")),
                          ("keygen", "--out", self.path("key"))):
            done = subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False, preexec_fn=limit)
            self.check_refused(done, 3, "io", self.folder)
            self.assertEqual(os.listdir(self.folder), [])

    def test_an_output_without_a_name(self):
        self.check_refused(run("logits", PRISM, "--ids", "1", "--out", "", cwd=self.folder), 2,
                           "out_of_range", "--out")
        self.check_refused(run("receipt", PRISM, "--out", "", cwd=self.folder), 2, "out_of_range",
                           "--out")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_reader_that_has_gone(self):
        for arguments in (["--help"], ["inspect", PRISM], ["run", PRISM, "--ids", "1", "--json"]):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([PROGRAM, *arguments], stdout=writer, stderr=subprocess.PIPE,
                                  check=False)
            os.close(writer)
            self.check_refused(done, 3, "io", "stdout")

    def test_a_receipt_whose_summary_cannot_be_placed(self):
        out = self.path("receipts")
        self.check_ok(run("receipt", PRISM, "--level", "L0", "--out", out))
        summary = next(name for name in os.listdir(out) if name.endswith(".txt"))
        other = self.path("other")
        os.makedirs(os.path.join(other, summary))
        self.check_refused(run("receipt", PRISM, "--level", "L0", "--out", other), 3, "io", summary)
        self.assertEqual(os.listdir(other), [summary])


class Folders(Case):
    def linked(self, *without, name="model"):
        folder = self.path(name)
        os.mkdir(folder)
        for file in ("config.json", "model.safetensors"):
            if file not in without:
                os.symlink(os.path.join(PRISM, file), os.path.join(folder, file))
        return folder

    def test_a_link_that_leads_nowhere_is_not_an_absent_file(self):
        for index, name in enumerate(("generation_config.json", "quantization_config.json",
                                      "model.safetensors.index.json", "tokenizer.json",
                                      "config.json", "model.safetensors")):
            folder = self.linked(name, name=f"stray{index}")
            os.symlink("nowhere", os.path.join(folder, name))
            self.check_refused(run("run", folder, "--ids", "1"), 1, "not_found", f"/{name})")
            folder = self.linked(name, name=f"loop{index}")
            os.symlink(name, os.path.join(folder, name))
            self.check_refused(run("run", folder, "--ids", "1"), 3, "io", f"/{name})")

    def test_a_folder_name_that_is_no_text(self):
        folder = os.fsencode(self.linked()) + b"\xff \xc3\xa9"
        os.rename(self.path("model"), folder)
        done = subprocess.run([PROGRAM, "inspect", folder, "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        self.assertTrue(json.loads(self.check_ok(done))["directory"].endswith("\ufffd \u00e9"))

    def test_a_licence_that_is_no_text_or_no_file(self):
        folder = self.linked()
        os.mkfifo(os.path.join(folder, "LICENSE"))
        os.symlink("/dev/zero", os.path.join(folder, "LICENSE.txt"))
        with open(os.path.join(folder, "README.md"), "wb") as file:
            file.write(b"---\nlicense: \xff\n---\n")
        out = self.path("receipts")
        self.check_ok(run("receipt", folder, "--level", "L0", "--out", out))
        statement = next(name for name in os.listdir(out) if name.endswith(".jsonl"))
        with open(os.path.join(out, statement), encoding="utf-8") as file:
            self.assertIn('"README.md: ?"', file.read())

    def test_a_model_too_short_for_the_prompt_names_its_config(self):
        folder = self.linked("config.json")
        with open(os.path.join(PRISM, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        config["text_config"]["max_position_embeddings"] = 4
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.check_refused(run("receipt", folder, "--out", self.path("r")), 1, "out_of_range",
                           "config.json", "max_position_embeddings")
        self.assertFalse(os.path.exists(self.path("r")))

    def test_megabytes_of_names_stay_one_readable_line(self):
        folder = self.linked("config.json")
        with open(os.path.join(PRISM, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        config["text_config"]["num_hidden_layers"] = 4096
        del config["text_config"]["layer_types"]
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        done = run("inspect", folder)
        self.check_refused(done, 1, "not_found", "layers.8.input_layernorm.weight", "more)")
        self.assertLess(len(done.stderr), 5000)

    def test_logits_that_are_not_finite_are_not_written(self):
        name = "model.language_model.embed_tokens.weight"
        folder = self.linked("model.safetensors")
        with open(os.path.join(PRISM, "model.safetensors"), "rb") as file:
            data = bytearray(file.read())
        size = struct.unpack("<Q", data[:8])[0]
        end = 8 + size + json.loads(data[8:8 + size])[name]["data_offsets"][1]
        data[end - 2:end] = b"\xc0\x7f"  # of the last id, which is never fed
        with open(os.path.join(folder, "model.safetensors"), "wb") as file:
            file.write(data)
        out = self.path("out")
        self.check_refused(run("logits", folder, "--ids", "1,2", "--out", out), 1, "out_of_range",
                           name, "token 999")
        self.assertFalse(os.path.exists(out))
        self.check_refused(run("run", folder, "--ids", "1,2"), 1, "out_of_range", name, "token 999")


class Prompts(Case):
    def test_a_prompt_at_fault_is_the_flags_fault(self):
        for text in (b"\xff", b"<tool_response>x</tool_response>"):
            self.check_refused(run("run", SCRIBE, "--chat", "--prompt", os.fsdecode(text)), 2,
                               "malformed", "--prompt")
        self.check_refused(run("run", SCRIBE, "--prompt", "a " * 5000), 2, "out_of_range",
                           "--prompt", "4096")


if __name__ == "__main__":
    unittest.main()
