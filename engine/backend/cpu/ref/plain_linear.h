// SPDX-License-Identifier: Apache-2.0
// Scalar definition of a plain linear, y = x W^T + bias, fp32: a column is a blocked sum along k
// (16 interleaved partial sums per 128-block, folded pairwise, blocks in order from zero) of
// products rounded to fp32. Neither input is rounded. The last block is padded by zeros.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_REF_PLAIN_LINEAR_H_
#define HALLMARK_ENGINE_BACKEND_CPU_REF_PLAIN_LINEAR_H_

#include <cstdint>

namespace hallmark {

// x [rows, k], w [n, k] widened, bias [n] or null, y [rows, n].
void RefPlainLinear(const float* x, int64_t rows, const float* w, const float* bias, int64_t n,
                    int64_t k, float* y);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_REF_PLAIN_LINEAR_H_
