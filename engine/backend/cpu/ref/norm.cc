// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/ref/norm.h"

#include <cmath>

#include "engine/base/blocked_sum.h"
#include "engine/base/elementary.h"

namespace hallmark {
namespace {

float InverseRms(const float* x, int64_t count, float eps) {
  const float sum = BlockedSum(count, [x](int64_t i) { return x[i] * x[i]; });
  return 1.0f / std::sqrt(sum / static_cast<float>(count) + eps);
}

}  // namespace

void RefRmsNorm(const float* x, const float* weight, int64_t count, float eps, float* out) {
  const float r = InverseRms(x, count, eps);
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] * r * (1.0f + weight[i]);
}

void RefGatedNorm(const float* o, const float* z, const float* weight, int64_t count, float eps,
                  float* out) {
  const float r = InverseRms(o, count, eps);
  for (int64_t i = 0; i < count; ++i) out[i] = o[i] * r * weight[i] * Silu(z[i]);
}

}  // namespace hallmark
