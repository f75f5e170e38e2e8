# SPDX-License-Identifier: Apache-2.0
"""The kernels that a decode step, a round and a prompt of the 27B spend their time in, how each is
launched, and what one time round its main loop does."""
import re

CODEBOOKS = {0: "3inst", 1: "mcg", 2: "mul1"}
RATES = [(2, 6), (2, 7), (2, 8), (2, 12), (1, 6), (1, 8), (0, 6), (0, 8)]  # codebook, half bits
TILE_GROUPS = {8: 1, 16: 2, 32: 4, 64: 8, 128: 16}  # rows -> groups of 8
ELEMENT_WEIGHTS = 8  # of a lane: an EXL3 tile has 256, a warp 32 lanes


class Hot:
    """pattern: finds the kernel's mangled name. unit: what is counted; units: how many of it one
    lane does in one time round, a number or a function of the loop; None for a kernel that is
    counted as a whole. shared: the name that `launches shared` prints, or None."""

    def __init__(self, name, pattern, unit=None, units=1, shared=None, threads=None):
        self.name = name
        self.pattern = re.compile(pattern)
        self.unit = unit
        self.units = units
        self.shared = shared
        self.threads = threads  # of a launch, where its bound is not the number


def rate_name(codebook, half_bits):
    return f"{CODEBOOKS[codebook]} K{half_bits / 2:g}"


def weights_of(groups, codebook):
    """Every product takes 8 weights of a lane and one group of rows."""

    def units(loop):
        weights = ELEMENT_WEIGHTS * loop.products // groups
        if codebook == 2 and loop.byte_sums != weights:
            raise ValueError(f"{loop.byte_sums} byte sums for {weights} weights: one each was expected")
        return weights

    return units


def products(loop):
    return loop.products


def kernels():
    result = []
    for codebook, half_bits in RATES:
        rate = rate_name(codebook, half_bits)
        for rows, groups in TILE_GROUPS.items():
            result.append(Hot(f"Exl3LinearKernel {rate}, {rows} rows",
                              rf"16Exl3LinearKernelILi{codebook}ELi{half_bits}ELi{groups}EE", "weight",
                              weights_of(groups, codebook), f"linear {half_bits} {rows}"))
        result.append(Hot(f"Exl3DecodeKernel {rate}",
                          rf"16Exl3DecodeKernelILi{codebook}ELi{half_bits}EE", "whole kernel"))
    for where, flag in (("y", 1), ("shared", 0)):
        result.append(Hot(f"Exl3PromptKernel, sums in {where}", rf"16Exl3PromptKernelILb{flag}EE",
                          "product", products, f"prompt {where}"))
    result.append(Hot("Exl3RotateKernel", "16Exl3RotateKernelE", "whole kernel"))
    for number, form in ((0, "bf16"), (1, "fp8")):
        for tiles in (1, 3):
            result.append(Hot(f"AttentionChunksKernel {form}, {16 * tiles} vectors",
                              rf"21AttentionChunksKernelILi256ELNS_8KvFormatE{number}ELi{tiles}EE",
                              "product", products, f"attention {tiles}"))
    result += [
        Hot("AttentionMergeKernel", "20AttentionMergeKernelILi256EE", "chunk and channel", 4),
        # Steps, windows and replays are the same kernel; a lane holds 8 x 4 elements of the state.
        Hot("DeltaNetKernel", "14DeltaNetKernelE", "element and row", 32),
        Hot("DeltaNetPrepareKernel", "21DeltaNetPrepareKernelE", "whole kernel"),
        Hot("ConvSiluKernel", "14ConvSiluKernelILi4EE", "whole kernel"),
        Hot("GatedNorm128Kernel", "18GatedNorm128KernelE", "whole kernel"),
        Hot("RegisterNormKernel", "18RegisterNormKernelILb1ELb0EE", "whole kernel", threads=640),
        Hot("RegisterNormKernel with a sum before", "18RegisterNormKernelILb1ELb1EE", "whole kernel",
            threads=640),
    ]
    for rows in (1, 8):
        result += [
            Hot(f"PlainLinearKernel bf16, few columns, {rows} rows",
                rf"17PlainLinearKernelINS_11Bf16ElementELi{rows}ENS0_10PlainShapeILi40E", "whole kernel"),
            Hot(f"AffineLinearKernel, {rows} rows", rf"18AffineLinearKernelILi{rows}ELi8EE", "weight", 64),
            Hot(f"AffineLinearKernel, few columns, {rows} rows",
                rf"18AffineLinearKernelILi{rows}ELi16EE", "weight", 64),
        ]
    return result
