// SPDX-License-Identifier: Apache-2.0
// Scalar definition of the EXL3 linear, y = ((((x * suh) H) W_q) H) * svh + bias, with the decode
// done bit by bit. Slow and obvious on purpose: the fast tiers are compared with it bit for bit
// (clauses row-invariance, decode-exact). fp32 throughout, no fused multiply-add.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_REF_EXL3_LINEAR_H_
#define HALLMARK_ENGINE_BACKEND_CPU_REF_EXL3_LINEAR_H_

#include <cstdint>

#include "engine/backend/exl3_codec.h"

namespace hallmark {

// One EXL3 linear as plain arrays.
struct Exl3Operand {
  Exl3Rate rate;
  int64_t k = 0;                      // stored inputs, a multiple of 128
  int64_t n = 0;                      // stored outputs, a multiple of 128
  const uint16_t* trellis = nullptr;  // [k/16, n/16, 8 * k2], words in storage order
  const float* suh = nullptr;         // [k], widened; +-1 for packed signs
  const float* svh = nullptr;         // [n]
  const float* bias = nullptr;        // [n] or null
};

// w [128, 16] <- the values of 8 tiles that follow each other along the inputs, widened.
// tiles [8, 8 * k2].
void RefDecodePanel(Exl3Rate rate, const uint16_t* tiles, float* w);

// sum[c] += B(c) for 16 columns, B = the product of one 128-block: 16 interleaved partial sums
// (element index mod 16), each in order from zero, folded pairwise 8, 4, 2 and 1 apart. Products
// are rounded to fp32 before they are added (for two fp16 values they are exact).
// w [128, 16], x [128], sum [16].
void RefAddPanel(const float* w, const float* x, float* sum);

// y [rows, out_features] from x [rows, in_features]; in_features <= k, out_features <= n. A column
// before the output rotation is the sum of its blocks in order, from zero. False, with y
// unspecified, if a rotated input is not finite in fp16.
bool RefExl3Linear(const Exl3Operand& weight, const float* x, int64_t rows, int64_t in_features,
                   int64_t out_features, float* y);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_REF_EXL3_LINEAR_H_
