// SPDX-License-Identifier: Apache-2.0
// The drafter's convolution with per-row coefficients. Implements clause row-invariance, with the
// bits of the CPU backend (RefDynamicConv): a thread owns an element and adds its taps in order
// from zero.
#ifndef HALLMARK_KERNELS_DRAFT_DYNAMIC_CONV_H_
#define HALLMARK_KERNELS_DRAFT_DYNAMIC_CONV_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hallmark {

struct DynamicConvShape {
  int64_t kernel = 0;      // taps
  int64_t group = 0;       // channels that share a coefficient; divides the channels
  int64_t block_rows = 0;  // row r of a call is row r % block_rows of its block
  int side = 0;            // 0 or 1: which half of the coefficients
};

// out[i, c] = sum over taps t, in order, of (base[t, c] + dyn[i, side, t, c / group]) * x[i - t,
// c]; rows before the block's first add nothing. base [kernel, channels]; dyn [rows, 2 * kernel *
// (channels / group)]; x, out [rows, channels]; `out` is not `x`. Up to 2^31 - 1 rows;
// cudaErrorInvalidValue for other shapes.
cudaError_t LaunchDynamicConv(const DynamicConvShape& shape, const float* base, const float* dyn,
                              const float* x, int64_t rows, int64_t channels, float* out,
                              cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_DRAFT_DYNAMIC_CONV_H_
