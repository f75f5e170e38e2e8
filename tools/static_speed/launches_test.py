# SPDX-License-Identifier: Apache-2.0
"""What launches.cu prints: shared memory as the launches ask for it, and blocks of a multiprocessor
by the toolkit's formula, at the edges where one more register or byte costs a block.

Usage: launches_test.py LAUNCHES"""
import subprocess
import sys
import unittest

import hot

LAUNCHES = sys.argv.pop() if len(sys.argv) > 1 else None


def blocks(*row):
    result = subprocess.run([LAUNCHES, "blocks"], input=" ".join(map(str, row)) + "\n", capture_output=True,
                            text=True, check=True)
    return int(result.stdout)


class Launches(unittest.TestCase):
    def test_every_hot_kernel_that_asks_for_shared_memory_is_printed(self):
        lines = subprocess.run([LAUNCHES, "shared"], capture_output=True, text=True, check=True).stdout
        sizes = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines.splitlines()}
        self.assertEqual(set(sizes), {one.shared for one in hot.kernels() if one.shared})
        # 8 rows of 132 floats; 8 warps with 4 stages of 8 tiles of 24 words.
        self.assertEqual(sizes["linear 6 8"], 4 * (8 * 132 + 8 * 4 * 8 * 24))
        self.assertLessEqual(max(sizes.values()), 100 << 10)

    def test_a_register_more_costs_a_block(self):
        for arch in (86, 90, 121):
            self.assertEqual(blocks(arch, 128, 256, 16, 0), 2, arch)
            self.assertEqual(blocks(arch, 129, 256, 16, 0), 1, arch)

    def test_a_byte_more_costs_a_block(self):
        # 100 KiB hold two blocks of 49 KiB and the KiB that each reserves; handed out by 128 bytes.
        for arch in (86, 121):
            self.assertEqual(blocks(arch, 32, 128, 0, 49 << 10), 2, arch)
            self.assertEqual(blocks(arch, 32, 128, 1, 49 << 10), 1, arch)
        self.assertEqual(blocks(90, 32, 128, 0, 49 << 10), 4)

    def test_threads_and_blocks_that_fit(self):
        self.assertEqual(blocks(86, 16, 512, 0, 0), 3)
        self.assertEqual(blocks(90, 16, 512, 0, 0), 4)
        self.assertEqual([blocks(arch, 16, 32, 0, 0) for arch in (86, 90, 121)], [16, 32, 24])

    def test_an_architecture_that_is_not_described_is_refused(self):
        result = subprocess.run([LAUNCHES, "blocks"], input="75 32 128 0 0\n", capture_output=True, text=True,
                                check=False)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(subprocess.run([LAUNCHES], capture_output=True, check=False).returncode, 2)


if __name__ == "__main__":
    unittest.main()
