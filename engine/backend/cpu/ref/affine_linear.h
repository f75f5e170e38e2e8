// SPDX-License-Identifier: Apache-2.0
// Scalar definition of the 4-bit affine linear, fp32: a column is, over groups of 64 inputs in
// order and from zero,  acc = acc + (s * dot(x, q) + b * sum(x)),  dot and sum each a BlockedSum of
// the group's 64 terms (16 interleaved partial sums, folded pairwise), every operation rounded. x
// is not rounded; q is 0 .. 15, s and b are widened.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_REF_AFFINE_LINEAR_H_
#define HALLMARK_ENGINE_BACKEND_CPU_REF_AFFINE_LINEAR_H_

#include <cstdint>

namespace hallmark {

// x [rows, k], words [n, k/8] (element 8m + j in bits 4j .. 4j + 3 of word m), scales and biases
// [n, k/64], y [rows, n]. k is a multiple of 64.
void RefAffineLinear(const float* x, int64_t rows, const uint32_t* words, const float* scales,
                     const float* biases, int64_t n, int64_t k, float* y);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_REF_AFFINE_LINEAR_H_
