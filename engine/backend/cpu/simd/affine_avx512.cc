// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/simd/affine_loops.h"

namespace hallmark {
namespace {

#include "engine/backend/cpu/simd/affine.inl"

}  // namespace

void AddAffineAvx512(const AffineBlock& block, const float* x, int64_t x_stride, const float* x_sum,
                     int64_t sum_stride, int64_t rows, float* acc) {
  AddAffine(block, x, x_stride, x_sum, sum_stride, rows, acc);
}

}  // namespace hallmark
