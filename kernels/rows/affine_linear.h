// SPDX-License-Identifier: Apache-2.0
// Launcher of the 4-bit affine linear. Implements clauses row-invariance and slice-equals-parent,
// with the bits of the CPU backend (RefAffineLinear): a column is, over groups of 64 inputs in
// order and from zero, acc = acc + (s * dot(x, q) + b * sum(x)), dot and sum each a BlockedSum of
// 64 terms. Groups of 16 lanes make dots and sums, and one thread adds a column's groups in order.
#ifndef HALLMARK_KERNELS_ROWS_AFFINE_LINEAR_H_
#define HALLMARK_KERNELS_ROWS_AFFINE_LINEAR_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/rows/linear_tile.h"

namespace hallmark {

inline constexpr int64_t kAffineTerms = 64;

// All in device memory.
struct AffineWeight {
  const uint32_t* words = nullptr;  // [n, k/8]: element 8m + j in bits 4j .. 4j + 3 of word m; at a
                                    // multiple of 16 bytes
  const float* scales = nullptr;    // [n, k/64]
  const float* biases = nullptr;    // [n, k/64]
  int64_t n = 0;
  int64_t k = 0;  // a multiple of 64
};

// As LaunchPlainLinear (plain_linear.h) takes its spans and strides. cudaErrorInvalidValue as
// there, and for a k that is no multiple of 64 or words that are misaligned.
cudaError_t LaunchAffineLinear(const float* x, int64_t rows, const AffineWeight& weight,
                               std::span<const LinearSpan> spans, float* y, int64_t y_stride,
                               cudaStream_t stream);

// Every column, y [rows, n].
cudaError_t LaunchAffineLinear(const float* x, int64_t rows, const AffineWeight& weight, float* y,
                               cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_ROWS_AFFINE_LINEAR_H_
