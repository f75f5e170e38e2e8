// SPDX-License-Identifier: Apache-2.0
// Scalar definitions of the pointwise operations and of the short convolution (all tiers use them).
#ifndef HALLMARK_ENGINE_BACKEND_CPU_REF_POINTWISE_H_
#define HALLMARK_ENGINE_BACKEND_CPU_REF_POINTWISE_H_

#include <cstdint>

namespace hallmark {

// out[i] = silu(gate[i]) * up[i].
void RefSwiGlu(const float* gate, const float* up, int64_t count, float* out);

// Rotates the first `rotary_dim` channels of one head by position * inv_freq, in half-split pairs
// (d, d + rotary_dim/2): (x cos - y sin, y cos + x sin). The angle is an fp32 product.
void RefRope(const float* inv_freq, int rotary_dim, int64_t position, float* head);

// y[c] = silu(((w0 u0 + w1 u1) + w2 u2) + ...), the last tap on the row itself. x [rows, channels],
// weight [channels, kernel], window [kernel - 1, channels] oldest first. `window_out` may be null
// or alias `window_in`; `out` must not alias `x`.
void RefConvSilu(const float* x, int64_t rows, int64_t channels, const float* weight, int kernel,
                 const float* window_in, float* window_out, float* out);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_REF_POINTWISE_H_
