// SPDX-License-Identifier: Apache-2.0
// The inner loop of the 4-bit affine linear, one a tier; all give the same bits. Included by files
// compiled for wide instruction sets: nothing but plain C types here (see linear_loops.h).
#ifndef HALLMARK_ENGINE_BACKEND_CPU_SIMD_AFFINE_LOOPS_H_
#define HALLMARK_ENGINE_BACKEND_CPU_SIMD_AFFINE_LOOPS_H_

#include <stdint.h>

namespace hallmark {

// Weights of 16 outputs by one group of 64 inputs.
struct AffineBlock {
  uint32_t words[8][16];  // word m of each output: inputs 8m .. 8m + 7, four bits each
  float scales[16];
  float biases[16];
};

// acc[row, c] += scales[c] * dot + biases[c] * x_sum for each of `rows` rows and 16 outputs. x and
// x_sum point to the group's values of the first row; rows of x lie x_stride apart, of x_sum
// sum_stride, of acc 16.
using AddAffineLoop = void (*)(const AffineBlock& block, const float* x, int64_t x_stride,
                               const float* x_sum, int64_t sum_stride, int64_t rows, float* acc);

void AddAffineScalar(const AffineBlock& block, const float* x, int64_t x_stride, const float* x_sum,
                     int64_t sum_stride, int64_t rows, float* acc);
// x86-64 only.
void AddAffineAvx2(const AffineBlock& block, const float* x, int64_t x_stride, const float* x_sum,
                   int64_t sum_stride, int64_t rows, float* acc);
void AddAffineAvx512(const AffineBlock& block, const float* x, int64_t x_stride, const float* x_sum,
                     int64_t sum_stride, int64_t rows, float* acc);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_SIMD_AFFINE_LOOPS_H_
