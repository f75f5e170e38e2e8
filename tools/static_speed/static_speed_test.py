# SPDX-License-Identifier: Apache-2.0
"""Counts of machine code are those of a disassembler's text, and their limits turn red for what
they exist for: one instruction more in a loop, a spill, warps that no longer fit."""
import copy
import json
import os
import struct
import tempfile
import unittest

import counts
import cubin
import hot
import sass

HERE = os.path.dirname(os.path.abspath(__file__))
# Counted by eye in testdata: a time round the loop, what it passes by, and where the loop begins.
LOOPS = {
    "86": {"all": 32, "aside": 11, "first": 0x0E0, "product": 0x280,
           "issued": {"hmma": 1, "alu": 13, "imad": 11, "global": 2, "uniform": 3, "control": 2}},
    "121": {"all": 29, "aside": 11, "first": 0x120, "product": 0x2A0,
            "issued": {"hmma": 1, "alu": 12, "imad": 8, "global": 2, "uniform": 3, "control": 3}},
}


def words_of(arch):
    with open(os.path.join(HERE, "testdata", f"loop_sm_{arch}.sass"), encoding="utf-8") as file:
        lines = counts.listing_of(file.read())["Snippet"]
    return [lines[index][2] for index in range(len(lines))], lines


def aim(word, arch, steps):
    """The jump of `word`, to `steps` instructions past the next."""
    value = 4 * steps
    if int(arch) < 90:
        return word & ~((1 << 48) - 1 << 34) | (value & (1 << 48) - 1) << 34
    word &= ~((1 << 48) - 1 << 34 | 255 << 16)
    return word | (value >> 8 & (1 << 48) - 1) << 34 | (value & 255) << 16


def insert(words, at, word, arch):
    """A copy with one instruction more before index `at`; jumps across it are set right."""
    result = []
    for index, (old, one) in enumerate(zip(words, sass.decode(words, arch))):
        if one.target is not None:
            moved = [place + (place >= at) for place in (index, one.target)]
            old = aim(old, arch, moved[1] - moved[0] - 1)
        result.append(old)
    return result[:at] + [word] + result[at:]


def entry(work, **figures):
    return {"blocks": 2, "registers": 96, "shared": 1024, "threads": 256, "warps": 16, "work": work,
            **figures}


def work(arch, words):
    one = hot.Hot("Snippet", "Snippet", "weight", lambda loop: 4 * loop.products)
    return counts.work_of(one, words, arch)


class Snippets(unittest.TestCase):
    def test_every_operation_and_every_jump_is_the_disassemblers(self):
        for arch in LOOPS:
            words, lines = words_of(arch)
            self.assertGreater(len(lines), 70)
            problems, number = counts.compare(cubin.Kernel("Snippet", arch, words, 0, 0, 0), lines)
            self.assertEqual((problems, number), ([], len(lines)))
            jumps = [one for one in sass.decode(words, arch) if one.target is not None]
            self.assertEqual(len(jumps), 3)

    def test_a_wrong_table_is_told(self):
        words, lines = words_of("86")
        table = sass.TABLE
        try:
            sass.TABLE = {**table, sass.OPERATIONS["alu"]["LOP3"]: ("SHF", "alu")}
            problems, _ = counts.compare(cubin.Kernel("Snippet", "86", words, 0, 0, 0), lines)
        finally:
            sass.TABLE = table
        self.assertEqual(len(problems), 4)
        self.assertIn("SHF, the disassembler says LOP3", problems[0])

    def test_a_wrong_jump_is_told(self):
        words, lines = words_of("121")
        at = next(i for i, one in enumerate(sass.decode(words, "121")) if one.target is not None)
        words[at] = aim(words[at], "121", 0)
        problems, _ = counts.compare(cubin.Kernel("Snippet", "121", words, 0, 0, 0), lines)
        self.assertEqual(len(problems), 1)

    def test_the_loop_is_counted_without_what_is_done_now_and_then(self):
        for arch, known in LOOPS.items():
            words, _ = words_of(arch)
            found = work(arch, words)
            self.assertEqual(len(found), 1)
            self.assertEqual((found[0]["all"], found[0]["aside"]), (known["all"], known["aside"]), arch)
            self.assertEqual(found[0]["issued"], known["issued"], arch)
            self.assertEqual(sum(found[0]["issued"].values()), found[0]["all"])

    def test_a_rare_way_does_not_count_though_it_has_no_jump_of_its_own(self):
        # The same loop with the guard of the detour removed: then every time round takes it.
        words, _ = words_of("86")
        at = next(i for i, one in enumerate(sass.decode(words, "86")) if one.name == "BRA")
        words[at] = 0x000FC00000000000_0000000000007918  # NOP
        self.assertEqual(work("86", words)[0]["all"], LOOPS["86"]["all"] + LOOPS["86"]["aside"])

    def test_an_unknown_operation_is_refused(self):
        words, _ = words_of("86")
        words[5] = words[5] & ~0xFFF | 0x9FF
        with self.assertRaisesRegex(cubin.Unreadable, "0x9ff at 0x0050"):
            sass.decode(words, "86")


class Limits(unittest.TestCase):
    def check(self, arch, words, limit_words, **figures):
        found = {"Snippet": {"sm_" + arch: entry(work(arch, words), **figures)}}
        limits = {"Snippet": {"sm_" + arch: entry(work(arch, limit_words))}}
        return counts.check(found, limits, {arch})

    def test_the_same_code_is_within_its_limits(self):
        for arch in LOOPS:
            words, _ = words_of(arch)
            self.assertEqual(self.check(arch, words, words), [])

    def test_one_instruction_more_in_the_loop_is_red(self):
        for arch, known in LOOPS.items():
            words, lines = words_of(arch)
            lop = next(word for name, _, word in lines.values() if name == "LOP3")
            more = insert(words, known["product"] // 16, lop, arch)
            problems = self.check(arch, more, words)
            self.assertEqual(problems, [
                f"Snippet on sm_{arch}: {known['issued']['alu'] + 1} instructions of class alu for 4 x weight, "
                f"the limit is {known['issued']['alu']} for 4",
                f"Snippet on sm_{arch}: {known['all'] + 1} instructions for 4 x weight, the limit is "
                f"{known['all']} for 4"])
            # Less is no problem.
            self.assertEqual(self.check(arch, words, more), [])

    def test_one_instruction_more_outside_the_loop_is_none_of_the_loops(self):
        for arch, known in LOOPS.items():
            words, _ = words_of(arch)
            self.assertEqual(self.check(arch, insert(words, known["first"] // 16, words[0], arch), words), [])

    def test_a_spill_in_the_loop_is_red(self):
        for arch, known in LOOPS.items():
            words, _ = words_of(arch)
            store = 0x000FE20000100800_0000000001007387  # STL [R1], R0
            self.assertEqual(sass.decode([store], arch)[0].kind, "local")
            problems = self.check(arch, insert(words, known["product"] // 16, store, arch), words)
            self.assertEqual(len(problems), 2)
            self.assertIn("1 instructions of class local for 4 x weight, the limit is 0 for 4", problems[0])

    def test_an_instruction_for_another_is_red_where_the_other_class_grows(self):
        words, lines = words_of("86")
        at = next(i for i, line in lines.items() if line[0] == "LOP3")
        words_now = list(words)
        words_now[at] = next(word for name, _, word in lines.values() if name == "IMAD")
        problems = self.check("86", words_now, words)
        self.assertEqual(len(problems), 1)
        self.assertIn("class imad", problems[0])

    def test_more_of_what_a_launch_takes_is_red_and_fewer_warps_too(self):
        words, _ = words_of("86")
        for what, value in (("registers", 97), ("shared", 1040), ("threads", 288)):
            problems = self.check("86", words, words, **{what: value})
            self.assertEqual(len(problems), 1, what)
            self.assertIn(f"{value} {what}, the limit is", problems[0])
        for what, value in (("blocks", 1), ("warps", 15)):
            problems = self.check("86", words, words, **{what: value})
            self.assertEqual(len(problems), 1, what)
            self.assertIn(f"holds {value} {what}, at least", problems[0])

    def test_a_loop_unrolled_twice_is_compared_by_what_it_does(self):
        found = work("86", words_of("86")[0])
        twice = copy.deepcopy(found)
        twice[0].update({kind: 2 * twice[0][kind] for kind in ("all", "aside", "units")})
        twice[0]["issued"] = {kind: 2 * number for kind, number in twice[0]["issued"].items()}
        self.assertEqual(counts.check_work("Snippet", twice, found), [])
        twice[0]["all"] += 1
        self.assertEqual(len(counts.check_work("Snippet", twice, found)), 1)

    def test_loops_that_came_or_went_are_red(self):
        found = work("86", words_of("86")[0])
        self.assertEqual(len(counts.check_work("Snippet", found + found, found)), 1)
        self.assertEqual(len(counts.check_work("Snippet", [], found)), 1)

    def test_kernels_and_limits_are_the_same(self):
        words, _ = words_of("86")
        found = {"Snippet": {"sm_86": entry(work("86", words))}}
        self.assertEqual(counts.check(found, {}, {"86"}), ["limits.json: no limits for Snippet on sm_86"])
        self.assertEqual(counts.check({}, found, {"86"}), ["limits.json: Snippet on sm_86 was not found in this build"])
        self.assertEqual(counts.check({}, found, {"121"}), [])

    def test_the_committed_limits_know_every_hot_kernel(self):
        with open(counts.LIMITS, encoding="utf-8") as file:
            limits = json.load(file)["kernels"]
        self.assertEqual(set(limits), {one.name for one in hot.kernels()})
        for kernel, by_arch in limits.items():
            self.assertEqual(set(by_arch), {"sm_" + arch for arch in counts.COUNTED}, kernel)
            for figures in by_arch.values():
                self.assertTrue(figures["work"] and figures["warps"] > 0, kernel)


class Objects(unittest.TestCase):
    def container(self, payload, arch=86):
        header = struct.pack("<HHIQ", 2, 0x101, 64, len(payload)) + bytes(12) + struct.pack("<I", arch)
        entries = header.ljust(64, b"\0") + payload
        return struct.pack("<IHHQ", cubin.CONTAINER, 1, 16, len(entries)) + entries

    def write(self, fat):
        """An ELF64 file whose one section is a fat binary."""
        names = b"\0.nv_fatbin\0.shstrtab\0"
        body = fat + names
        at = 64 + len(body)
        rows = [bytes(64),
                struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 64, len(fat), 0, 0, 8, 0),
                struct.pack("<IIQQQQIIQQ", 12, 3, 0, 0, 64 + len(fat), len(names), 0, 0, 1, 0)]
        header = (b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + bytes(24) + struct.pack("<Q", at) + bytes(10) +
                  struct.pack("<3H", 64, len(rows), 2))
        handle, path = tempfile.mkstemp(suffix=".o")
        self.addCleanup(os.unlink, path)
        with os.fdopen(handle, "wb") as file:
            file.write(header + body + b"".join(rows))
        return path

    def test_reads_every_architecture_of_an_object(self):
        elf = b"\x7fELF" + bytes(60)
        path = self.write(self.container(elf, 86) + self.container(elf, 121))
        self.assertEqual(list(cubin.elf_files(path)), [("86", elf), ("121", elf)])
        self.assertEqual(counts.built_architectures([path]), {"86", "121"})

    def test_compressed_code_is_refused(self):
        path = self.write(self.container(b"\x28\xb5\x2f\xfd" + bytes(60)))
        with self.assertRaisesRegex(cubin.Unreadable, "sm_86 is compressed"):
            list(cubin.elf_files(path))

    def test_an_object_that_is_none_is_refused(self):
        with self.assertRaises(cubin.Unreadable):
            cubin.sections(b"no object at all, but long enough to look at" * 3)

    def test_a_build_without_a_kernel_is_told(self):
        found, problems = counts.find([], {"86"})
        self.assertEqual(len(problems), len(found))
        self.assertIn("no machine code for sm_86", problems[0])


if __name__ == "__main__":
    unittest.main()
