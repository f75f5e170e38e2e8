// SPDX-License-Identifier: Apache-2.0
// The norm after the delta rule, head by head, and its gate. Implements clause row-invariance, with
// the bits of the CPU backend (RefGatedNorm): 16 lanes own a head; the sum of squares is a
// BlockedSum.
#ifndef HALLMARK_KERNELS_MIXERS_GATED_NORM_H_
#define HALLMARK_KERNELS_MIXERS_GATED_NORM_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hallmark {

// out = ((o * r) * weight) * silu(z), r = 1 / sqrt(sum(o^2) / head_dim + eps), for each of `heads`
// runs of head_dim values: rows and their heads follow each other. o, z, out [heads, head_dim],
// weight [head_dim]; `out` may be `o` or `z`. cudaErrorInvalidValue for other shapes.
cudaError_t LaunchGatedNorm(const float* o, const float* z, const float* weight, int64_t heads,
                            int64_t head_dim, float eps, float* out, cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_MIXERS_GATED_NORM_H_
