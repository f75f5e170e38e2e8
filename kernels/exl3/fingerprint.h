// SPDX-License-Identifier: Apache-2.0
// What tensor cores make of fixed inputs: 4,096 products of 16 terms by mma.sync.m16n8k16, half in
// fp16 and half in bf16, with exponents far apart, sums that cancel and subnormals. How the terms
// of one instruction are aligned and cut is the hardware's own affair and differs between
// generations; the digest of these results is what tells arithmetics of GPUs apart. Not a test:
// nothing here is expected to have a value.
#ifndef HALLMARK_KERNELS_EXL3_FINGERPRINT_H_
#define HALLMARK_KERNELS_EXL3_FINGERPRINT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hallmark {

// fp32 results: 16 instructions of each type, each [16, 8].
inline constexpr int kFingerprintResults = 4096;

// results [kFingerprintResults], as fp32 bits.
cudaError_t LaunchFingerprint(uint32_t* results, cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_EXL3_FINGERPRINT_H_
