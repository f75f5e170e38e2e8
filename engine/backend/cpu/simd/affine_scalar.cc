// SPDX-License-Identifier: Apache-2.0
// The scalar tier's loop of the 4-bit affine linear: ref/affine_linear.h, a group at a time.
#include "engine/backend/cpu/ref/blocked_sum.h"
#include "engine/backend/cpu/simd/affine_loops.h"

namespace hallmark {

void AddAffineScalar(const AffineBlock& block, const float* x, int64_t x_stride, const float* x_sum,
                     int64_t sum_stride, int64_t rows, float* acc) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int c = 0; c < 16; ++c) {
      const float dot = BlockedSum(64, [&](int64_t i) {
        return x[i] * static_cast<float>((block.words[i / 8][c] >> (4 * (i % 8))) & 15u);
      });
      acc[c] += block.scales[c] * dot + block.biases[c] * *x_sum;
    }
    x += x_stride;
    x_sum += sum_stride;
    acc += 16;
  }
}

}  // namespace hallmark
