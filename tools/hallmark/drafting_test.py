# SPDX-License-Identifier: Apache-2.0
"""Drafting and several prompts as users meet them: the same tokens whatever drafts, copies or runs
beside them; counts that show drafts landed; replies in the order of their prompts."""
import fcntl
import json
import os
import pty
import shutil
import signal
import subprocess
import unittest

import jsonschema

from cli_test import IDS, PRISM, PROGRAM, SCRIBE, SOURCE, Case, read_file, read_tensors, run, schema

DRAFTER = os.path.join(SOURCE, "golden/models/scribe-11m-dflash2")
PROMPTS = os.path.join(SCRIBE, "prompts.json")
REPEATING = "The cat sat. The dog ran. The cat sat. The dog ran. The cat sat. The dog ran. The cat"
SAMPLED = ("--temperature", "0.8", "--top-p", "0.95", "--seed", "7")


class Drafting(Case):
    def file(self, name, content):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def generate(self, *arguments):
        value = json.loads(self.check_ok(run("run", SCRIBE, *arguments, "--json")))
        jsonschema.validate(value, schema("run"))
        return value

    def total(self, replies, key):
        return sum(reply[key] for reply in replies)


class SameTokens(Drafting):
    def check_all_ways(self, *settings):
        """Each prompt alone, undrafted, against every way of drafting and sharing."""
        common = ("--max-tokens", "36", "--ignore-stop", *settings)
        with open(PROMPTS, encoding="utf-8") as file:
            prompts = json.load(file)
        self.assertEqual(len(prompts), 5)
        alone = [self.generate("--prompt", prompt, "--copy-match", "0", *common)
                 for prompt in prompts]
        for reply in alone:
            self.assertEqual((reply["rounds"], reply["drafted"]), (35, 0))
            self.assertGreater(len(set(reply["ids"])), 5)
        draft = ("--drafter", DRAFTER)
        chains = (*draft, "--copy-match", "0", "--window", "7")
        both = (*draft, "--copy-match", "1", "--window", "7")
        few = (*draft, "--drafter-weights", "4bit", "--draft-vocab", "0:100,300:2000", "--window", "3")
        for streams, way in (("1", draft), ("1", chains), ("4", ()), ("4", draft), ("4", both),
                             ("4", few)):
            value = self.generate("--prompts", PROMPTS, "--streams", streams, *way, *common)
            self.assertEqual([reply["ids"] for reply in value["replies"]],
                             [reply["ids"] for reply in alone], way)
            self.assertEqual(value["peak_streams"], int(streams))
            if "--window" in way:
                self.assertGreater(self.total(value["replies"], "accepted"), 0, way)
                self.assertLess(self.total(value["replies"], "rounds"), 5 * 35, way)

    def test_greedy_bf16(self):
        self.check_all_ways("--kv", "bf16")

    def test_sampled_bf16(self):
        self.check_all_ways("--kv", "bf16", *SAMPLED)

    def test_greedy_fp8(self):
        self.check_all_ways("--kv", "fp8")

    def test_sampled_fp8(self):
        self.check_all_ways("--kv", "fp8", *SAMPLED)


class Counts(Drafting):
    def check_counts(self, value):
        self.assertEqual(value["rounds"] + value["accepted"] + 1, len(value["ids"]))
        self.assertLessEqual(value["copied"], value["accepted"])
        self.assertLessEqual(value["accepted"], value["drafted"])
        times = value["times"]
        self.assertAlmostEqual(times["decode_tokens_per_second"] * times["decode_seconds"],
                               len(value["ids"]) - 1, places=6)

    def test_drafts_land_and_are_counted(self):
        value = self.generate("--prompt", "In the beginning God created", "--drafter", DRAFTER,
                              "--window", "7", "--copy-match", "0", "--max-tokens", "64",
                              "--ignore-stop")
        self.check_counts(value)
        self.assertGreater(value["drafted"], 0)
        self.assertGreater(value["accepted"], 0)
        self.assertEqual(value["copied"], 0)

    def test_a_window_bounds_what_a_round_verifies(self):
        for window in (0, 1, 3):
            value = self.generate("--ids", IDS, "--drafter", DRAFTER, "--window", window,
                                  "--max-tokens", "32", "--ignore-stop")
            self.check_counts(value)
            self.assertLessEqual(value["drafted"], window * value["rounds"])
            self.assertEqual(value["drafted"] > 0, window > 0)

    def test_copies_land_on_a_text_that_repeats_itself(self):
        arguments = ("--prompt", REPEATING, "--max-tokens", "48", "--ignore-stop")
        value = self.generate(*arguments, "--copy-match", "2", "--window", "15")
        self.check_counts(value)
        self.assertGreater(value["copied"], 0)
        self.assertEqual(value["copied"], value["accepted"])  # there is no drafter
        self.assertEqual(self.generate(*arguments, "--copy-match", "0")["drafted"], 0)

    def test_a_drafter_left_unused_drafts_nothing(self):
        arguments = ("--ids", IDS, "--drafter", DRAFTER, "--copy-match", "64", "--window", "7",
                     "--max-tokens", "16")
        value = self.generate(*arguments, "--no-draft")
        self.assertEqual((value["drafted"], value["rounds"]), (0, 15))
        self.assertGreater(self.generate(*arguments)["drafted"], 0)

    def test_the_same_prompt_again_resumes(self):
        ids = list(range(100, 140))
        path = self.file("p.json", [ids, ids])
        replies = self.generate("--prompts", path, "--streams", "1", "--max-tokens", "8")["replies"]
        self.assertEqual([reply["resumed"] for reply in replies], [0, 39])
        self.assertEqual(replies[0]["ids"], replies[1]["ids"])

    def test_no_tokens_wanted(self):
        value = self.generate("--prompts", PROMPTS, "--drafter", DRAFTER, "--max-tokens", "0")
        self.assertEqual([(r["ids"], r["rounds"], r["drafted"]) for r in value["replies"]],
                         [([], 0, 0)] * 5)
        self.assertEqual(value["peak_streams"], 0)


class Replies(Drafting):
    def test_come_in_the_order_of_the_prompts_whichever_ends_first(self):
        # The second has room for two ids, while the first is still at work.
        model = self.path("model")
        shutil.copytree(SCRIBE, model)
        with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        config["text_config"]["max_position_embeddings"] = 128
        with open(os.path.join(model, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        path = self.file("p.json", [[57, 318, 262], [5] * 127, [1033, 57]])
        arguments = ("--prompts", path, "--max-tokens", "64", "--ignore-stop", "--copy-match", "0")
        value = json.loads(self.check_ok(run("run", model, *arguments, "--json")))
        replies = value["replies"]
        self.assertEqual([(len(r["ids"]), r["stop"], r["prompt_tokens"]) for r in replies],
                         [(64, "max_tokens", 3), (2, "context", 127), (64, "max_tokens", 2)])
        self.assertEqual(value["peak_streams"], 2)
        text = self.check_ok(run("run", model, *arguments))
        self.assertEqual(text, "\n".join(f"=== reply {i + 1} of 3 ===\n{r['text']}\n"
                                         for i, r in enumerate(replies)))

    def test_a_file_is_lines_of_text_or_a_json_array(self):
        arguments = ("--max-tokens", "8")
        texts = ["In the beginning", "  import os"]
        ids = [[57, 318], [1]]
        lines = self.generate("--prompts", self.file("p.txt", "\n".join(texts)), *arguments)
        ended = self.generate("--prompts", self.file("q", "\r\n".join(texts) + "\r\n"), *arguments)
        array = self.generate("--prompts", self.file("p.json", texts + ids), *arguments)
        alone = [self.generate("--prompt", text, *arguments) for text in texts]
        alone += [self.generate("--ids", ",".join(map(str, item)), *arguments) for item in ids]
        for value, count in ((lines, 2), (ended, 2), (array, 4)):
            self.assertEqual([r["ids"] for r in value["replies"]],
                             [r["ids"] for r in alone[:count]])

    def test_one_prompt_of_a_file_answers_in_the_form_of_many(self):
        path = self.file("p.txt", "In the beginning\n")
        value = self.generate("--prompts", path, "--max-tokens", "4")
        self.assertEqual((len(value["replies"]), value["peak_streams"]), (1, 1))
        text = self.check_ok(run("run", SCRIBE, "--prompts", path, "--max-tokens", "4"))
        self.assertEqual(text, f"=== reply 1 of 1 ===\n{value['replies'][0]['text']}\n")

    def test_chat_asks_each_as_a_user(self):
        path = self.file("p.txt", "Hello\nWho are you?\n")
        plain = self.generate("--prompts", path, "--max-tokens", "1")["replies"]
        chat = self.generate("--prompts", path, "--max-tokens", "1", "--chat")["replies"]
        for one, other in zip(plain, chat):
            self.assertGreater(other["prompt_tokens"], one["prompt_tokens"] + 3)

    def test_more_prompts_than_streams_wait(self):
        path = self.file("p.json", [[i + 1, i + 2] for i in range(11)])
        values = [self.generate("--prompts", path, "--max-tokens", "24", "--streams", streams,
                                "--ignore-stop")
                  for streams in ("2", "8")]
        self.assertEqual([value["peak_streams"] for value in values], [2, 8])
        self.assertEqual(*[[r["ids"] for r in value["replies"]] for value in values])

    def test_a_small_context_makes_prompts_wait_and_changes_no_token(self):
        arguments = ("--prompts", PROMPTS, "--max-tokens", "32")
        wide, narrow = self.generate(*arguments), self.generate(*arguments, "--context", "512")
        self.assertEqual((wide["peak_streams"], narrow["peak_streams"]), (5, 2))
        self.assertEqual(*[[r["ids"] for r in value["replies"]] for value in (wide, narrow)])


class Endings(Drafting):
    LONG = ("--ids", IDS, "--max-tokens", "4000", "--ignore-stop")

    def test_a_terminal_sees_the_speed(self):
        for arguments, line in ((("--ids", IDS), rb"16 tokens, [0-9.]+ a second, [0-9.]+ a round, "
                                                rb"stop: max_tokens\r\n$"),
                                (("--prompts", PROMPTS), rb"80 tokens, [0-9.]+ a second, "
                                                         rb"[0-9.]+ a round\r\n$")):
            ours, theirs = pty.openpty()
            done = subprocess.run([PROGRAM, "run", SCRIBE, *arguments, "--drafter", DRAFTER,
                                   "--max-tokens", "16", "--ignore-stop"], stdout=subprocess.PIPE,
                                  stderr=theirs, check=False)
            os.close(theirs)
            fcntl.fcntl(ours, fcntl.F_SETFL, os.O_NONBLOCK)
            seen = os.read(ours, 65536)
            os.close(ours)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(seen, line)

    def test_an_interrupt_ends_with_what_was_written(self):
        whole = run("run", SCRIBE, *self.LONG[:3], "300", "--ignore-stop").stdout
        with subprocess.Popen([PROGRAM, "run", SCRIBE, *self.LONG, "--drafter", DRAFTER],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            begun = process.stdout.read(40)
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, errors), (-signal.SIGINT, b""))
        size = min(len(begun + rest), len(whole) - 1)
        self.assertEqual((begun + rest)[:size], whole[:size])

    def test_a_reader_that_leaves_ends_all_streams(self):
        with subprocess.Popen([PROGRAM, "run", SCRIBE, "--prompts", PROMPTS, "--drafter", DRAFTER,
                               *self.LONG[2:]], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            process.stdout.read(40)
            process.stdout.close()
            errors = process.stderr.read().decode()
            process.wait(timeout=60)
        self.assertEqual(process.returncode, 3)
        self.assertRegex(errors, r"^hallmark: io: [^\n]+\(stdout\)\n$")  # once


class Draft(Drafting):
    def propose(self, name, *arguments, model=SCRIBE, drafter=DRAFTER):
        out = self.path(name)
        self.assertEqual(self.check_ok(run("draft", model, "--drafter", drafter, "--out", out,
                                           *arguments)), "")
        return out

    def golden(self, index):
        tensor = read_tensors(os.path.join(DRAFTER, "golden.safetensors"))
        ids = ",".join(map(str, tensor(f"seq{index}", "i")))
        return (("--ids", ids, "--anchor", tensor(f"anchor{index}", "i")[0]),
                tensor(f"peer_draft{index}", "i"))

    def test_proposes_what_the_published_module_does(self):
        for index in (0, 2):
            arguments, expected = self.golden(index)
            out = self.propose(f"{index}", *arguments)
            header, data = read_file(out)
            self.assertEqual(header, {
                "rows": {"dtype": "F32", "shape": [7, 256], "data_offsets": [0, 7168]},
                "draft": {"dtype": "I32", "shape": [7], "data_offsets": [7168, 7196]}})
            self.assertEqual(len(data), 7196)
            equal = sum(a == b for a, b in zip(read_tensors(out)("draft", "i"), expected))
            self.assertGreaterEqual(equal, 6)

    def test_proposes_what_the_published_module_does_after_many_ids(self):
        golden = read_tensors(os.path.join(DRAFTER, "golden_long.safetensors"))
        equal = []
        for count in (127, 128, 129, 257, 400):
            out = self.propose(f"{count}", "--ids", ",".join(map(str, golden("ids", "i")[:count])),
                               "--anchor", golden(f"anchor{count}", "i")[0])
            draft = read_tensors(out)("draft", "i")
            equal.append(sum(a == b for a, b in zip(draft, golden(f"draft{count}", "i"))))
        self.assertGreaterEqual(min(equal), 6, equal)

    def test_threads_and_tier_change_no_byte_and_ids_do(self):
        arguments, _ = self.golden(0)
        files = [read_file(self.propose(str(i), *arguments, *more)) for i, more in enumerate((
            ("--threads", "1"), ("--threads", "2"), ("--tier", "scalar")))]
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0], files[2])
        anchor = arguments[2:]
        for name, more in (("kv", (*arguments, "--kv", "fp8")),
                           ("ids", (*anchor, "--ids", "1," * 200 + "57"))):
            self.assertNotEqual(read_file(self.propose(name, *more)), files[0])

    def test_a_draft_vocabulary_bounds_what_is_proposed(self):
        arguments, _ = self.golden(0)
        out = self.propose("o", *arguments, "--draft-vocab", "300:301,1000:1100")
        for id_ in read_tensors(out)("draft", "i"):
            self.assertTrue(256 <= id_ < 384 or 896 <= id_ < 1152, id_)

    def test_a_drafter_without_selector(self):
        drafter = os.path.join(SOURCE, "golden/models/prism-dflash")
        out = self.propose("o", "--ids", "1,2,3", "--anchor", "4", model=PRISM, drafter=drafter)
        self.assertEqual(read_file(out)[0]["rows"]["shape"], [15, 256])


if __name__ == "__main__":
    unittest.main()
