// SPDX-License-Identifier: Apache-2.0
// RMS norms of whole rows. Not for norms of single heads: mixers/gated_norm.h, draft/heads.h.
// Implements clause row-invariance, with the bits of the CPU backend: a block of threads owns a
// row. The sum of squares is a BlockedSum (lane_sum.cuh); r = 1 / sqrt(sum / cols + eps).
#ifndef HALLMARK_KERNELS_ROWS_NORM_H_
#define HALLMARK_KERNELS_ROWS_NORM_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hallmark {

// x, out fp32 [rows, cols], cols >= 1; weight [cols]. `out` may be `x`. Up to 2^31 - 1 rows;
// cudaErrorInvalidValue for other shapes.

// out = (x * r) * (1 + weight).
cudaError_t LaunchRmsNorm(const float* x, int64_t rows, int64_t cols, const float* weight,
                          float eps, float* out, cudaStream_t stream);

// out = (x * r) * weight.
cudaError_t LaunchPlainRmsNorm(const float* x, int64_t rows, int64_t cols, const float* weight,
                               float eps, float* out, cudaStream_t stream);

// x += y, then out = (x * r) * (1 + weight) for the sum; x, y and out do not overlap. cols up to
// kMostAddNormCols, which stay in registers.
inline constexpr int64_t kMostAddNormCols = 8192;
cudaError_t LaunchAddRmsNorm(float* x, const float* y, int64_t rows, int64_t cols,
                             const float* weight, float eps, float* out, cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_ROWS_NORM_H_
