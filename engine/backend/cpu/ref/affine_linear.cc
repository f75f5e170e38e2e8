// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/ref/affine_linear.h"

#include "engine/base/blocked_sum.h"

namespace hallmark {

void RefAffineLinear(const float* x, int64_t rows, const uint32_t* words, const float* scales,
                     const float* biases, int64_t n, int64_t k, float* y) {
  constexpr int64_t kGroup = 64;
  const int64_t groups = k / kGroup;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < n; ++c) {
      float total = 0.0f;
      for (int64_t g = 0; g < groups; ++g) {
        const float* in = x + row * k + g * kGroup;
        const uint32_t* packed = words + (c * k + g * kGroup) / 8;
        const auto q = [packed](int64_t i) {
          return static_cast<float>((packed[i / 8] >> (4 * (i % 8))) & 15u);
        };
        const float dot = BlockedSum(kGroup, [&](int64_t i) { return in[i] * q(i); });
        const float sum = BlockedSum(kGroup, [&](int64_t i) { return in[i]; });
        total += scales[c * groups + g] * dot + biases[c * groups + g] * sum;
      }
      y[row * n + c] = total;
    }
  }
}

}  // namespace hallmark
