// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/ref/plain_linear.h"

#include "engine/base/blocked_sum.h"

namespace hallmark {

void RefPlainLinear(const float* x, int64_t rows, const float* w, const float* bias, int64_t n,
                    int64_t k, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < n; ++c) {
      const float sum = BlockedSum(k, [&](int64_t i) { return x[row * k + i] * w[c * k + i]; });
      y[row * n + c] = bias != nullptr ? sum + bias[c] : sum;
    }
  }
}

}  // namespace hallmark
