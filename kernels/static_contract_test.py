# SPDX-License-Identifier: Apache-2.0
"""The static contract turns red for what it exists for, and names kernel and architecture."""
import json
import os
import tempfile
import unittest

import static_contract as contract

REPORT = """ptxas info    : Compiling entry function '_ZN8hallmark12_GLOBAL__N_19AddKernelEPfS1_l' for 'sm_86'
ptxas info    : Function properties for _ZN8hallmark12_GLOBAL__N_19AddKernelEPfS1_l
    {spilled} bytes stack frame, {spilled} bytes spill stores, 0 bytes spill loads
ptxas info    : Used {registers} registers, used 0 barriers, {shared} bytes smem
"""


class StaticContract(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def reports(self, **used):
        path = os.path.join(self.folder, "add.cu.o")
        with open(path + ".ptxas", "w", encoding="utf-8") as file:
            file.write(REPORT.format(**{"registers": 20, "spilled": 0, "shared": 64, **used}))
        return contract.read_reports([path])

    def test_reads_what_a_kernel_uses(self):
        found, silent = self.reports(registers=31)
        self.assertEqual(found, {"AddKernel": {"86": {"registers": 31, "spilled": 0, "shared": 64}}})
        self.assertEqual(silent, [])

    def test_a_file_without_a_report_is_told(self):
        self.assertEqual(contract.read_reports(["gone.o"])[1], ["gone.o"])

    def test_each_limit_holds(self):
        limits = {"AddKernel": {"registers": 20, "spilled": 0, "shared": 64}}
        self.assertEqual(contract.check_limits(self.reports()[0], limits), [])
        for what, value in (("registers", 21), ("spilled", 4), ("shared", 65)):
            problems = contract.check_limits(self.reports(**{what: value})[0], limits)
            self.assertEqual(problems, [f"AddKernel on sm_86: {value} {what}, the limit is {limits['AddKernel'][what]}"])

    def test_limits_and_kernels_are_the_same(self):
        self.assertEqual(len(contract.check_limits(self.reports()[0], {})), 1)
        self.assertEqual(len(contract.check_limits({}, {"GoneKernel": {}})), 1)

    def test_every_architecture_is_compiled_for(self):
        found, _ = self.reports()
        self.assertEqual(contract.check_architectures(found, {"86"}), [])
        self.assertEqual(contract.check_architectures(found, {"86", "121"}),
                         ["AddKernel was not compiled for sm_121"])

    def test_fast_math_is_refused(self):
        for flag, problems in (("--fmad=false", 0), ("--fmad=false --use_fast_math", 1), ("-O3", 1),
                               ("--fmad=false -prec-div=false", 1)):
            with open(os.path.join(self.folder, "compile_commands.json"), "w", encoding="utf-8") as file:
                json.dump([{"file": "/k/add.cu", "command": f"nvcc {flag} -c add.cu"}], file)
            self.assertEqual(len(contract.check_commands(self.folder)), problems, flag)

    def test_no_device_code_is_a_problem(self):
        with open(os.path.join(self.folder, "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump([], file)
        self.assertEqual(len(contract.check_commands(self.folder)), 1)


if __name__ == "__main__":
    unittest.main()
