// SPDX-License-Identifier: Apache-2.0
// Element by element: sums, products and activations. Implements clause row-invariance, with the
// bits of the CPU backend: an element depends on its own inputs alone.
#ifndef HALLMARK_KERNELS_ROWS_POINTWISE_H_
#define HALLMARK_KERNELS_ROWS_POINTWISE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hallmark {

// All arrays are fp32. cudaErrorInvalidValue for a negative size.

// x += y.
cudaError_t LaunchAdd(float* x, const float* y, int64_t count, cudaStream_t stream);

// out = silu(gate) * up. `out` may be `gate` or `up`.
cudaError_t LaunchSwiGlu(const float* gate, const float* up, int64_t count, float* out,
                         cudaStream_t stream);

// x *= factor.
cudaError_t LaunchScale(float* x, int64_t count, float factor, cudaStream_t stream);

// logits [rows, cols] in place: value * multiplier, then softcap * tanh(. / softcap) unless softcap
// is 0. *first_bad (device memory, which the caller set to INT32_MAX) becomes the lowest row with
// a value that is not finite, before or after; it stays where every value is finite. Up to
// INT32_MAX - 1 rows.
cudaError_t LaunchScaleLogits(float* logits, int64_t rows, int64_t cols, float multiplier,
                              float softcap, int32_t* first_bad, cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_ROWS_POINTWISE_H_
