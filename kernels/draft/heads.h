// SPDX-License-Identifier: Apache-2.0
// Norm and rotation of the drafter's query and key heads. Implements clause row-invariance, with
// the bits of the CPU backend (RefPlainRmsNorm, RefRope): 16 lanes own a head of a row; the sum of
// squares is a BlockedSum; the angle is the fp32 product of position and inv_freq.
#ifndef HALLMARK_KERNELS_DRAFT_HEADS_H_
#define HALLMARK_KERNELS_DRAFT_HEADS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hallmark {

struct DraftHeadShape {
  int heads = 0;
  int head_dim = 0;  // even; pairs (d, d + head_dim/2) are rotated
  float eps = 0.0f;
};

// Per head of row i: out = rope((x * r) * weight, position + i), r = 1 / sqrt(sum(x^2) / head_dim +
// eps). x, out [rows, heads * head_dim]; weight [head_dim]; inv_freq [head_dim / 2]. `out` may be
// `x`. cudaErrorInvalidValue for other shapes.
cudaError_t LaunchDraftHeads(const DraftHeadShape& shape, const float* weight,
                             const float* inv_freq, int64_t position, const float* x, int64_t rows,
                             float* out, cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_DRAFT_HEADS_H_
