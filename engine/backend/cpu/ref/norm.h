// SPDX-License-Identifier: Apache-2.0
// Scalar definitions of the two RMS norms of qwen3_5 (all tiers use them).
#ifndef HALLMARK_ENGINE_BACKEND_CPU_REF_NORM_H_
#define HALLMARK_ENGINE_BACKEND_CPU_REF_NORM_H_

#include <cstdint>

namespace hallmark {

// out[i] = (x[i] * r) * (1 + weight[i]), r = 1 / sqrt(sum(x^2) / count + eps). `out` may be `x`.
void RefRmsNorm(const float* x, const float* weight, int64_t count, float eps, float* out);

// out[i] = ((o[i] * r) * weight[i]) * silu(z[i]), r as above: a plain weight, and the gate last.
void RefGatedNorm(const float* o, const float* z, const float* weight, int64_t count, float eps,
                  float* out);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_REF_NORM_H_
