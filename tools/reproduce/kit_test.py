# SPDX-License-Identifier: Apache-2.0
"""The kit without a GPU: what it refuses and with which exit code, that a stopped run goes on after
the last step that ended, that the archive holds what run.sh names, and every GPU suite."""
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest

SOURCE = os.environ["HALLMARK_SOURCE"]

# Answers as the program does; writes each call down, and can hang in one.
PROGRAM = r'''#!/bin/sh
log=$(dirname "$0")/calls
echo "$*" >>"$log"
case $1 in
  --version) printf 'hallmark 0.1.0\narithmetic cpu/1/x\n' ;;
  inspect) printf '{\n  "config": {\n    "layers": 64,\n    "vocab": 248320\n  }\n}\n' ;;
  plan)
    case "$*" in *"--vram 7000MiB"*) echo "hallmark: out-of-range: one stream takes 9 GiB" >&2; exit 1 ;; esac
    printf '{\n  "fits": {\n    "one_stream_context": 70000\n  },\n  "totals": {\n    "model": 13958643712\n  }\n}\n' ;;
  receipt)
    while [ "$1" != --out ]; do shift; done
    case $2 in *"$(cat "$(dirname "$0")/hang" 2>/dev/null || echo never)") touch "$log.hangs"; sleep 60 ;; esac
    mkdir -p "$2"
    echo '{"core":{"arithmetic":"cuda/1/abc"},"core_sha256":"c0ffee"}' >"$2/L3.cuda.c0ffee.intoto.jsonl" ;;
  verify) exit "$(cat "$(dirname "$0")/verdict" 2>/dev/null || echo 0)" ;;
  run)
    for resumed in 0 3584; do
      printf '      "accepted": 1,\n      "prompt_tokens": 3600,\n      "resumed": %s,\n' $resumed
      printf '      "rounds": 40,\n      "times": {\n        "decode_seconds": 2.0,\n'
      printf '        "decode_tokens_per_second": 60.0,\n        "open_seconds": 1.0,\n'
      printf '        "prompt_seconds": 4.25\n'
    done ;;
esac
'''
SUITES = r'''#!/bin/sh
echo "suites $*" >>"$(dirname "$0")/calls"
[ "$1" != --gtest_list_tests ] || printf 'NormGpu.\n  A\nGolden/CpuCuda.\n  B/0  # x\n'
[ "$1" != "--gtest_filter=$(cat "$(dirname "$0")/red" 2>/dev/null)" ]
'''
# The driver's own program, for a card given by the environment.
SMI = r'''#!/bin/sh
case "$*" in
  *=name\ *) echo "Test card" ;;
  *=driver_version*) echo "${DRIVER:-580.65}" ;;
  *=compute_cap*) echo "${CAPABILITY:-8.6}" ;;
  *=memory.total*) echo "${MEMORY:-24564}" ;;
  *=memory.free*) echo "${MEMORY:-24000}" ;;
esac
'''


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


class Kit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp()
        write(os.path.join(cls.top, "hallmark"), PROGRAM)
        write(os.path.join(cls.top, "gpu_suites"), SUITES)
        cls.archive = os.path.join(cls.top, "kit.tar.gz")
        subprocess.run([os.path.join(SOURCE, "tools/kit"), "--binaries", cls.top, cls.archive],
                       check=True, stdout=subprocess.DEVNULL, timeout=120)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.top)

    def setUp(self):
        self.here = tempfile.mkdtemp(dir=self.top)
        with tarfile.open(self.archive) as archive:
            archive.extractall(self.here)
        self.kit = os.path.join(self.here, "hallmark-kit")
        self.smi = os.path.join(self.here, "smi")
        write(self.smi, SMI)
        self.out = os.path.join(self.here, "results")

    def start(self, *arguments, **environment):
        environment = {**os.environ, "HALLMARK_NVIDIA_SMI": self.smi, **environment}
        environment.pop("HALLMARK_GOLDEN", None)
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        return subprocess.Popen([os.path.join(self.kit, "run.sh"), "--out", self.out, *arguments],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment, start_new_session=True)

    def run_kit(self, *arguments, **environment):
        process = self.start(*arguments, **environment)
        process.out, process.err = process.communicate(timeout=120)
        return process

    def calls(self, word):
        path = os.path.join(self.kit, "bin/calls")
        return [line for line in read(path).splitlines() if line.startswith(word)] \
            if os.path.exists(path) else []

    def model(self):
        for name in ("model", "drafter"):
            os.makedirs(os.path.join(self.here, name))
            write(os.path.join(self.here, name, "config.json"), "{}")
        return ["--model", os.path.join(self.here, "model"),
                "--drafter", os.path.join(self.here, "drafter")]

    def test_what_a_machine_lacks_is_a_sentence_and_exit_code_3(self):
        for environment, sentence in (
                ({"HALLMARK_NVIDIA_SMI": "no-such-smi"}, "no NVIDIA driver was found"),
                ({"DRIVER": "575.51"}, "the NVIDIA driver is 575.51, expected 580 or newer"),
                ({"DRIVER": "No devices were found"}, "does not answer for GPU 0: No devices"),
                ({"CAPABILITY": "7.5"}, "compute capability 7.5, expected 8.0 or higher"),
                ({"MEMORY": "4096"}, "4096 MiB of memory free, expected 6144 at least")):
            done = self.run_kit(**environment)
            self.assertEqual(done.returncode, 3, done.err)
            self.assertIn(sentence, done.err)
            self.assertEqual((done.out, self.calls("receipt")), ("", []))
        write(os.path.join(self.kit, "MACHINE"), "another")
        done = self.run_kit()
        self.assertEqual((done.returncode, "this kit is for another" in done.err), (3, True))

    def test_wrong_usage_is_exit_code_2(self):
        for arguments in (["--model"], ["--drafter", self.kit], ["--model", self.here], ["x"]):
            self.assertEqual(self.run_kit(*arguments).returncode, 2, arguments)
        shutil.rmtree(os.path.join(self.kit, "golden"))
        done = self.run_kit()
        self.assertEqual((done.returncode, "set HALLMARK_GOLDEN" in done.err), (2, True))

    def test_a_model_that_does_not_fit_is_refused_with_the_plans_sentence(self):
        done = self.run_kit(*self.model(), MEMORY="7000")
        self.assertEqual(done.returncode, 3)
        self.assertIn("too little memory for this model", done.err)
        self.assertIn("one stream takes 9 GiB", done.err)

    def test_an_estimate_does_nothing(self):
        done = self.run_kit("--estimate", *self.model())
        self.assertEqual(done.returncode, 0, done.err)
        self.assertRegex(done.out, r"L3 receipt of your model, keys in fp8 +about \d+")
        self.assertIn("70000 positions fit", done.out)
        self.assertEqual((self.calls("receipt"), self.calls("suites")), ([], []))

    def test_a_stopped_run_goes_on_after_the_last_step_that_ended(self):
        write(os.path.join(self.kit, "bin/hang"), "scribe-fp8")
        process = self.start()
        marker = os.path.join(self.kit, "bin/calls.hangs")
        for _ in range(600):
            if os.path.exists(marker):
                break
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3)
        self.assertIn("the same command goes on", out)
        self.assertEqual(len(self.calls("receipt")), 2)
        os.remove(os.path.join(self.kit, "bin/hang"))
        done = self.run_kit()
        self.assertEqual(done.returncode, 0, done.out + done.err)
        self.assertIn("L3 receipt of the 11M model, bf16: done before", done.out)
        self.assertIn("core digest   c0ffee  scribe-fp8", done.out)
        self.assertNotIn("cpu/1", done.out)  # what a GPU shows is not of the CPU's arithmetic
        self.assertEqual([line.split("--kv ")[1][:4] for line in self.calls("receipt")],
                         ["bf16", "fp8 ", "fp8 "])
        self.assertEqual(len([line for line in self.calls("suites") if "NormGpu" in line]), 1)
        with tarfile.open(os.path.join(self.out, "hallmark-results.tar.gz")) as results:
            names = results.getnames()
        self.assertIn("summary.txt", names)
        self.assertIn("receipts/scribe-bf16/L3.cuda.c0ffee.intoto.jsonl", names)
        # Another card's results are none of this one's.
        write(self.smi, SMI.replace("Test card", "Other card"))
        self.assertEqual(self.run_kit().returncode, 2)

    def test_what_was_shown_to_be_wrong_is_exit_code_1(self):
        write(os.path.join(self.kit, "bin/red"), "Golden/CpuCuda.*")
        done = self.run_kit()
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: suite-Golden-CpuCuda", done.out)
        self.assertNotIn("What was shown", done.out)

    def test_what_is_not_decided_is_exit_code_3_and_tried_again(self):
        write(os.path.join(self.kit, "bin/verdict"), "3")
        done = self.run_kit()
        self.assertEqual(done.returncode, 3)
        self.assertNotIn("What was shown", done.out)
        os.remove(os.path.join(self.kit, "bin/verdict"))
        self.assertEqual(self.run_kit().returncode, 0)

    def test_a_model_of_ones_own_on_a_card_of_24_gib(self):
        done = self.run_kit(*self.model())
        self.assertEqual(done.returncode, 0, done.out + done.err)
        own = self.calls("receipt")[-1]
        for flag in ("--kv fp8", "--embedding mapped", "--drafter-weights 4bit", "--level L3"):
            self.assertIn(flag, own)
        self.assertEqual(len(self.calls("run")), 4)
        table = read(self.out, "table.txt")
        self.assertRegex(table, r"prompt-3\.6k +3600 +0 +4\.25 +60\.0 +3\.00 +3\.93 s to the first id")
        self.assertRegex(table, r"follow-up-3\.6k +3600 +3584 +4\.25 +60\.0 +3\.00 +60\.9 ids/s")
        prompt = read(self.out, "logs/prompt-prompt-8192.json")
        first, second = (part.split(",") for part in prompt[2:].rstrip("]\n").split("],["))
        self.assertEqual((len(first), len(second), second[:8192]), (8192, 8240, first))
        self.assertEqual(len({int(one) for one in first} | {0}) > 7000, True)
        self.assertLess(max(map(int, second)), 90000)
        copy = read(self.out, "logs/prompt-copy-2048.json")[2:].rstrip("]\n").split(",")
        self.assertEqual((len(copy), copy[:2048], copy[:64]), (4160, copy[2048:4096], copy[4096:]))

    def test_the_archive_holds_what_run_sh_names_and_what_its_sums_say(self):
        script = read(self.kit, "run.sh")
        named = set(re.findall(r"\$kit/([\w./-]+)", script)) | \
            {"golden/" + path for path in re.findall(r"\$HALLMARK_GOLDEN/([\w./-]+)", script)}
        self.assertLessEqual({"bin/hallmark", "bin/gpu_suites", "golden", "MACHINE",
                              "golden/models/scribe-11m-exl3"}, named)
        for path in named:
            self.assertTrue(os.path.exists(os.path.join(self.kit, path)), path)
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=self.kit, check=True)
        # Every golden file that the suites and receipts can read: all but what only people read.
        for folder, folders, files in os.walk(os.path.join(SOURCE, "golden")):
            folders[:] = [name for name in folders if name not in ("schemas", "provenance")]
            inside = os.path.relpath(folder, os.path.join(SOURCE, "golden"))
            if inside == ".":
                continue
            for name in files:
                self.assertTrue(os.path.exists(os.path.join(self.kit, "golden", inside, name)), name)

    def test_every_gpu_suite_of_the_tree_is_in_the_kit(self):
        listed = re.search(r"set\(suites ([^)]*)\)", read(SOURCE, "tools/reproduce/CMakeLists.txt"))
        found = set()
        for top in ("engine", "kernels", "conformance"):
            for folder, _, files in os.walk(os.path.join(SOURCE, top)):
                if "CMakeLists.txt" in files:
                    found |= set(re.findall(r"add_suite\((\w+) [^)]*NEED gpu(?! LABELS vendor)",
                                            read(folder, "CMakeLists.txt")))
        self.assertEqual(set(listed.group(1).split()), found)


if __name__ == "__main__":
    unittest.main()
