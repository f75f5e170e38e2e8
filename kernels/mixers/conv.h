// SPDX-License-Identifier: Apache-2.0
// The depthwise causal convolution and SiLU before the delta rule. Implements clauses
// row-invariance and chunked-equals-whole, with the bits of the CPU backend (RefConvSilu): a thread
// owns a channel and adds its taps in order, the last on the row itself; taps and window are fp32.
#ifndef HALLMARK_KERNELS_MIXERS_CONV_H_
#define HALLMARK_KERNELS_MIXERS_CONV_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hallmark {

inline constexpr int kConvMinTaps = 2;
inline constexpr int kConvMaxTaps = 8;

// out[t, c] = silu(w[c, 0] u[t - taps + 1] + ... + w[c, taps - 1] u[t]), u = x [rows, channels]
// after the taps - 1 rows of window_in, oldest first. weight [channels, taps]; `out` is not `x`.
// window_out (may be window_in, or null: nothing is kept) receives the last taps - 1 rows, also
// when there are no new ones. cudaErrorInvalidValue for taps outside 2 .. 8 or rows beyond a
// million.
cudaError_t LaunchConvSilu(const float* x, int64_t rows, int64_t channels, const float* weight,
                           int taps, const float* window_in, float* window_out, float* out,
                           cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_MIXERS_CONV_H_
