# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that someone made to harm: files that are no files, names that lead elsewhere, sizes
that would fill the memory, files that shrink under the reader. Each ends in one short line with its
place and exit code, and within a bound of memory."""
import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import time
import unittest

from cli_test import PRISM, PROGRAM, SCRIBE, Case, read_file, run

MB = 1 << 20
INDEX = "model.safetensors.index.json"
SHARD = "model-00001-of-00001.safetensors"
with open(PROGRAM, "rb") as program:
    SANITIZED = b"__asan_init" in program.read()


def bounded(megabytes, *arguments, timeout=120):
    """The finished program, which may have so much memory of its own: mapped files do not count.
    One byte more ends it with a signal."""
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes * MB, megabytes * MB))
    return run(*arguments, timeout=timeout, preexec_fn=None if SANITIZED else limit)


class Hostile(Case):
    def linked(self, *without, name="model", source=PRISM):
        folder = self.path(name)
        os.mkdir(folder)
        for file in os.listdir(source):
            if file not in without and not file.startswith("golden"):
                os.symlink(os.path.join(source, file), os.path.join(folder, file))
        return folder

    def check_bounded(self, folder, megabytes, exit_code, code, *parts):
        done = bounded(megabytes, "inspect", folder)
        self.check_refused(done, exit_code, code, *parts)
        self.assertLess(len(done.stderr), 5000, "an error is one readable line")

    def write(self, folder, name, data):
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())


class NoFiles(Hostile):
    """What is no regular file is refused by name, without waiting for it and without reading it."""
    DOCUMENTS = ("config.json", "generation_config.json", "quantization_config.json", INDEX,
                 "tokenizer.json", "model.safetensors")

    def check_each(self, make, exit_code, code, label):
        for number, name in enumerate(self.DOCUMENTS):
            folder = self.linked(name, name=f"{label}{number}")
            make(os.path.join(folder, name))
            done = run("run", folder, "--ids", "1", timeout=20)
            self.check_refused(done, exit_code, code, f"/{name})")

    def test_pipes(self):
        self.check_each(os.mkfifo, 1, "unsupported", "pipe")

    def test_folders(self):
        self.check_each(os.mkdir, 1, "unsupported", "folder")

    def test_devices(self):
        self.check_each(lambda path: os.symlink("/dev/zero", path), 1, "unsupported", "zero")
        self.check_each(lambda path: os.symlink("/dev/full", path), 1, "unsupported", "full")

    def test_sockets(self):
        def bind(path):
            server = socket.socket(socket.AF_UNIX)
            self.addCleanup(server.close)
            here = os.getcwd()
            os.chdir(os.path.dirname(path))  # a socket's path is short
            try:
                server.bind(os.path.basename(path))
            finally:
                os.chdir(here)
        self.check_each(bind, 1, "unsupported", "socket")

    def test_files_of_the_system_that_cannot_be_mapped(self):
        # Regular by their mode; of no bytes, and of bytes that the system will not map.
        for number, (target, exit_code, code) in enumerate((
                ("/proc/self/mem", 1, "malformed"), ("/proc/self/maps", 1, "malformed"),
                ("/sys/kernel/mm/transparent_hugepage/enabled", 3, "io"))):
            if not os.path.exists(target):
                continue
            for name in ("config.json", "model.safetensors"):
                folder = self.linked(name, name=f"{name}{number}")
                os.symlink(target, os.path.join(folder, name))
                self.check_refused(run("inspect", folder, timeout=20), exit_code, code, f"/{name}")

    def test_a_link_out_of_the_folder_is_what_download_caches_are(self):
        self.check_ok(run("inspect", self.linked()))
        folder = self.linked("model.safetensors", name="other")
        os.mkfifo(self.path("pipe"))
        os.symlink("../pipe", os.path.join(folder, "model.safetensors"))
        self.check_refused(run("inspect", folder, timeout=20), 1, "unsupported",
                           "/model.safetensors)")

    def test_receipts_policies_and_keys(self):
        pipe = self.path("L0.cpu.x.intoto.jsonl")
        os.mkfifo(pipe)
        os.symlink("/dev/zero", self.path("L1.cpu.x.intoto.jsonl"))
        for path in (pipe, self.path("L1.cpu.x.intoto.jsonl")):
            self.assertIn(run("verify", path, timeout=20).returncode, (1, 3))
            for flags in (("--policy", path), ("--waivers", path), ("--public-key", path)):
                done = run("verify", path, *flags, timeout=20)
                self.assertIn(done.returncode, (2, 3), done.stderr.decode())
            self.assertNotEqual(run("diff", path, path, timeout=20).returncode, 0)

    def test_a_receipt_and_a_policy_of_many_gigabytes(self):
        path = self.path("L0.cpu.x.intoto.jsonl")
        with open(path, "wb") as file:
            file.truncate(1 << 36)
        done = bounded(64, "verify", path, timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn("too-large", done.stdout.decode())
        done = bounded(64, "verify", path, "--policy", path, timeout=20)
        self.check_refused(done, 2, "out_of_range", "--policy")


class Names(Hostile):
    def test_shards_that_lie_elsewhere(self):
        outside = self.path("secret.safetensors")
        os.symlink(os.path.join(PRISM, "model.safetensors"), outside)
        for number, name in enumerate(("../secret.safetensors", outside, "./" + SHARD,
                                       "sub/" + SHARD, "..safetensors", "a\x00.safetensors",
                                       "C:\\" + SHARD, "\\\\host\\share.safetensors", "")):
            folder = self.linked("model.safetensors", name=f"model{number}")
            self.write(folder, INDEX, json.dumps({"weight_map": {"a": name}}))
            self.check_refused(run("inspect", folder), 1, "malformed", INDEX, "/weight_map/a")

    def test_a_shard_with_the_longest_name_and_one_beyond(self):
        for length, code in ((255, "not_found"), (256, "not_found"), (100000, "not_found")):
            folder = self.linked("model.safetensors", name=f"model{length}")
            name = "m" * (length - 12) + ".safetensors"
            self.write(folder, INDEX, json.dumps({"weight_map": {"a": name}}))
            done = run("inspect", folder)
            self.check_refused(done, 1, code)
            self.assertLess(len(done.stderr), 5000)

    def test_names_that_are_no_text_or_no_end(self):
        record = '":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
        for number, (name, code) in enumerate((
                (b"\xff", "malformed"), (b"\xed\xa0\x80", "malformed"), (b"\\ud800", "malformed"),
                (b"\\u0000", "not_found"), (b"\n", "malformed"), (b"\x1b[2J", "malformed"),
                (b"\\u001b[2J", "not_found"), (b"n" * (4 * MB), "not_found"))):
            folder = self.linked("model.safetensors", name=f"model{number}")
            header = b'{"' + name + record.encode()
            self.write(folder, "model.safetensors", struct.pack("<Q", len(header)) + header)
            done = run("inspect", folder)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rb"^hallmark: " + code.encode() + rb": [^\n]+\n$")
            self.assertNotRegex(done.stderr, rb"[\x00-\x09\x0b-\x1f]")
            self.assertLess(len(done.stderr), 5000)
            done.stderr.decode("utf-8")


class Sizes(Hostile):
    """The memory of each refusal has a bound that no number in a file can move."""

    def weights(self, header, data_bytes=0, name="model"):
        folder = self.linked("model.safetensors", name=name)
        path = os.path.join(folder, "model.safetensors")
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(header)))
            file.write(header)
            file.truncate(8 + len(header) + data_bytes)  # a hole: takes no disk
        return folder

    def test_a_shape_of_a_billion(self):
        for number, (shape, code) in enumerate((("[1000000000]", "malformed"),
                                                ("[4611686018427387904]", "malformed"),
                                                ("[9223372036854775808]", "malformed"),
                                                ("[99999999999999999999999]", "malformed"),
                                                ("[-1]", "malformed"))):
            header = ('{"a":{"dtype":"U8","shape":%s,"data_offsets":[0,1]}}' % shape).encode()
            self.check_bounded(self.weights(header, 1, name=f"model{number}"), 32, 1, code,
                               "tensor a")

    def test_a_shape_of_many_million_extents(self):
        ones = b"1," * (40 * MB) + b"1"
        header = b'{"a":{"dtype":"U8","shape":[' + ones + b'],"data_offsets":[0,1]}}'
        self.check_bounded(self.weights(header, 1), 32, 1, "unsupported", "tensor a")

    def test_a_tensor_as_large_as_a_disk_in_a_hole(self):
        size = 1 << 40
        header = ('{"a":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (size, size)).encode()
        self.check_bounded(self.weights(header, size), 32, 1, "not_found")

    def test_a_header_beyond_the_cap(self):
        for number, length in enumerate((100_000_001, 1 << 40, (1 << 64) - 1)):
            folder = self.linked("model.safetensors", name=f"model{number}")
            path = os.path.join(folder, "model.safetensors")
            with open(path, "wb") as file:
                file.write(struct.pack("<Q", length))
                file.truncate(1 << 41)
            self.check_bounded(folder, 32, 1, "out_of_range", "byte 0")

    def test_a_header_of_100_megabytes(self):
        record = '"%07d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
        count = 99_900_000 // len(record % 0)
        header = "{" + "".join(record % i for i in range(count))
        whole = header[:-1] + "}"
        # Accepted as a file: some 1.7 million tensors, none of which is the model's.
        self.check_bounded(self.weights(whole.encode(), name="whole"), 1000, 1, "not_found")
        # Refused at its last byte, and for its last name: nothing was built of it.
        self.check_bounded(self.weights((header[:-1] + "!").encode(), name="cut"), 32, 1,
                           "malformed", f"byte {7 + len(header)}")
        twice = header + '"0000007":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
        self.check_bounded(self.weights(twice.encode(), name="twice"), 96, 1, "malformed",
                           "tensor 0000007")
        spaces = b"{" + b" " * 99_999_998 + b"}"
        self.check_bounded(self.weights(spaces, name="spaces"), 32, 1, "not_found")
        self.check_bounded(self.weights(b"{}" + b"\0" * 99_999_998, name="nul"), 32, 1,
                           "malformed", "byte 10")

    def test_documents_that_nest_or_repeat_or_end_in_nul(self):
        for number, (text, code) in enumerate((
                ("[" * MB, "malformed"), ('{"a":' * MB, "malformed"),
                ('{"a":1,"a":2}', "malformed"), ('{"model_type":"x"}\0', "malformed"),
                ('{"model_type":"x"}\0garbage', "malformed"), ("\ufeff{}", "malformed"),
                ("{} {}", "malformed"), ("", "malformed"))):
            for name in ("config.json", INDEX, "quantization_config.json"):
                folder = self.linked(name, name=f"{name}{number}")
                self.write(folder, name, text)
                self.check_bounded(folder, 32, 1, code, name)
            folder = self.linked("tokenizer.json", name=f"scribe{number}", source=SCRIBE)
            self.write(folder, "tokenizer.json", text)
            done = run("run", folder, "--ids", "1")
            self.check_refused(done, 1, code, "tokenizer.json")

    def test_documents_that_unfold_in_memory(self):
        for number, (text, megabytes, code) in enumerate((
                (b"[" + b"[]," * (20 * MB) + b"[]]", 900, "out_of_range"),
                (b"[" + b"{}," * (20 * MB) + b"{}]", 900, "out_of_range"),
                (b'{"a":"' + b"x" * (60 * MB) + b'"}', 400, "malformed"),
                (b" " * (65 * MB), 32, "out_of_range"))):
            folder = self.linked("quantization_config.json", name=f"model{number}")
            self.write(folder, "quantization_config.json", text)
            done = bounded(megabytes, "inspect", folder)
            self.assertEqual(done.returncode, 1, done.stderr[:1000])
            self.assertRegex(done.stderr[:1000], rb"^hallmark: (%s|unsupported): " % code.encode())
            self.assertLess(len(done.stderr), 5000)


class Shrinking(Hostile):
    """A file that is cut while the program has it mapped: an error of the system with the file's
    name and byte, never a signal, and never an answer made of zeros."""

    def mapped(self, process, path):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            try:
                with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
                    if path in file.read():
                        return True
            except OSError:
                return False
        return False

    def cut(self, arguments, folder, size):
        """The finished program, whose weights were cut to `size` as soon as they were mapped; None
        when it ended before."""
        path = os.path.realpath(os.path.join(folder, "model.safetensors"))
        with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
            if not self.mapped(process, path):
                process.communicate()
                return None
            os.kill(process.pid, signal.SIGSTOP)
            os.truncate(path, size)
            os.kill(process.pid, signal.SIGCONT)
            out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def check_cut(self, command, size_of):
        seen = 0
        for _ in range(20):
            folder = self.linked("model.safetensors", name=f"cut{len(os.listdir(self.folder))}")
            with open(os.path.join(PRISM, "model.safetensors"), "rb") as file:
                data = file.read()
            self.write(folder, "model.safetensors", data)
            done = self.cut([part.replace("DIR", folder) for part in command], folder,
                            size_of(data))
            if done is None or done.returncode == 0:
                continue  # it had read all it needed
            self.check_refused(done, 3, "io", "/model.safetensors, byte ")
            seen += 1
            if seen == 3:
                return
        self.assertGreater(seen, 0, "the file was never cut in time")

    def test_while_it_is_read(self):
        for size_of in (lambda data: 0, lambda data: 4096, lambda data: len(data) // 2 + 77,
                        lambda data: len(data) - 1):
            self.check_cut(["run", "DIR", "--ids", "1,2,3", "--max-tokens", "2000"], size_of)
        self.check_cut(["logits", "DIR", "--ids", "1", "--out", self.path("out")], lambda data: 9)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_a_reply_is_not_made_of_lost_rows(self):
        # Everything but the embedding's rows is in memory by then.
        folder = self.linked("model.safetensors")
        header, data = read_file(os.path.join(PRISM, "model.safetensors"))
        self.assertEqual(header["model.language_model.embed_tokens.weight"]["data_offsets"][0], 0)
        with open(os.path.join(PRISM, "model.safetensors"), "rb") as file:
            whole = file.read()
        self.write(folder, "model.safetensors", whole)
        path = os.path.join(folder, "model.safetensors")
        with subprocess.Popen([PROGRAM, "run", folder, "--ids", "1,2,3", "--max-tokens", "3000",
                               "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL) as process:
            self.assertTrue(self.mapped(process, path))
            time.sleep(1.0)  # loading takes a tenth of it; the reply several
            early = process.poll()
            os.truncate(path, len(whole) - len(data))
            out, err = process.communicate(timeout=120)
        if early is not None:
            self.skipTest("the reply was ready too early")
        self.assertEqual(process.returncode, 3, err.decode())
        self.assertRegex(err.decode(), r"^hallmark: io: [^\n]+model\.safetensors[^\n]+\n$")
        self.assertFalse(re.search(rb'"ids"', out))


if __name__ == "__main__":
    unittest.main()
