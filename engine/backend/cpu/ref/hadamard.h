// SPDX-License-Identifier: Apache-2.0
// Scalar definition of the rotations around an EXL3 product, fp32, one 128-block at a time:
// butterflies (a + b, a - b) of strides 1, 2, 4, ..., 64 in that order, then one multiplication by
// fp32(1/sqrt(128)). No fused multiply-add; the only fp16 rounding is the one stated below.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_REF_HADAMARD_H_
#define HALLMARK_ENGINE_BACKEND_CPU_REF_HADAMARD_H_

#include <cstdint>

namespace hallmark {

inline constexpr float kHadamardScale = 0.088388347648f;  // 1/sqrt(128)

// v [128] <- v times the Sylvester matrix times kHadamardScale.
void RefHadamard128(float* v);

// xh [k] = fp16((x * suh) H), kept widened: x [in_features] is extended by zeros to k (a multiple
// of 128); suh [k] widened. False if a value is not finite in fp16.
bool RefRotateInput(const float* x, int64_t in_features, const float* suh, int64_t k, float* xh);

// y [count] = ((sum H) * svh + bias), first `count` columns of a 128-block: sum [128] is
// overwritten, svh [128], bias [128] or null.
void RefRotateOutput(float* sum, const float* svh, const float* bias, int64_t count, float* y);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_REF_HADAMARD_H_
