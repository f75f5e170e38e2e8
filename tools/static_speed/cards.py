# SPDX-License-Identifier: Apache-2.0
"""What is known of the three cards, with where it comes from. Nothing here was measured by us.

sms: multiprocessors; gigahertz: boost clock; gigabytes: of memory traffic a second; alu and imad:
lanes a multiprocessor serves each clock; tensor: FLOP of fp16 products with fp32 sums that one
multiprocessor makes each clock. Every multiprocessor has four schedulers, each issues one
instruction of a warp each clock: 128 lanes."""

ISSUED = 128
CARDS = {
    "RTX 3090 Ti": {
        "architecture": "sm_86", "sms": 84, "gigahertz": 1.86, "gigabytes": 1008, "alu": 64, "imad": 64,
        "tensor": 512,
        "sources": [
            "84 multiprocessors, boost 1,860 MHz, 21 Gbit/s x 384 bit = 1,008 GB/s: the vendor's figures "
            "as reported at its launch (tweaktown.com/news/84164)",
            "64 integer lanes; 4 tensor cores of 128 fp16 multiply-adds a clock, half of it with fp32 "
            "sums: the vendor's paper on GA102; times 84 x 1.86 GHz that is 80 TFLOP/s",
        ],
    },
    "GB10": {
        "architecture": "sm_121", "sms": 48, "gigahertz": 2.4, "gigabytes": 273, "alu": 128, "imad": 64,
        "tensor": 1024,
        "sources": [
            "6,144 cores of 128 a multiprocessor, 273 GB/s: the vendor's page (ai-infrastructure.net/"
            "dgx-spark quotes it); 237 to 245 GB/s of it are reported as streamed",
            "2.4 GHz is not a published figure: 31 TFLOP/s of fp32 (the vendor at Hot Chips 2025) over "
            "2 x 6,144 lanes would be 2.5",
            "tensor rate: NVIDIA/cudnn-frontend's table of FLOP a clock, compute capability 12: 118 "
            "TFLOP/s at this clock",
            "lanes for integers are assumed: 128 for logic and shifts, 64 for products",
        ],
    },
    "H200": {
        "architecture": "sm_90", "sms": 132, "gigahertz": 1.98, "gigabytes": 4800, "alu": 64, "imad": 64,
        "tensor": 4096,
        "sources": [
            "132 multiprocessors, boost 1,980 MHz, 4.8 TB/s: the vendor's data sheet",
            "tensor rate: NVIDIA/cudnn-frontend's table, compute capability 9: that of wgmma; these "
            "kernels use mma.sync, which is slower",
            "64 integer lanes: the programming guide's table of throughputs, compute capability 9.0",
        ],
    },
}
