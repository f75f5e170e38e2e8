// SPDX-License-Identifier: Apache-2.0
// The scalar tier's loop of the 4-bit affine linear: ref/affine_linear.h for 16 outputs at a time,
// each output's operations in the definition's order.
#include "engine/backend/cpu/simd/affine_loops.h"

namespace hallmark {
namespace {

constexpr int kOutputs = 16;
constexpr int kInputs = 64;
constexpr int kPartials = 16;

}  // namespace

void AddAffineScalar(const AffineBlock& block, const float* x, int64_t x_stride, const float* x_sum,
                     int64_t sum_stride, int64_t rows, float* acc) {
  float w[kInputs][kOutputs];
  for (int i = 0; i < kInputs; ++i) {
    for (int c = 0; c < kOutputs; ++c) {
      const auto q = static_cast<int32_t>((block.words[i / 8][c] >> (4 * (i % 8))) & 15u);
      w[i][c] = static_cast<float>(q);
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    float partial[kPartials][kOutputs] = {};
    for (int j = 0; j < kPartials; ++j) {
      for (int i = j; i < kInputs; i += kPartials) {
        for (int c = 0; c < kOutputs; ++c) partial[j][c] += x[i] * w[i][c];
      }
    }
    for (int step = kPartials / 2; step > 0; step /= 2) {
      for (int j = 0; j < step; ++j) {
        for (int c = 0; c < kOutputs; ++c) partial[j][c] += partial[j + step][c];
      }
    }
    for (int c = 0; c < kOutputs; ++c) {
      acc[c] += block.scales[c] * partial[0][c] + block.biases[c] * *x_sum;
    }
    x += x_stride;
    x_sum += sum_stride;
    acc += kOutputs;
  }
}

}  // namespace hallmark
