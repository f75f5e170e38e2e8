// SPDX-License-Identifier: Apache-2.0
// Prepares attention: norm and rotation of queries and keys, and the store of keys and values into
// pages. Not for attention itself (attention.h).
// Implements clause row-invariance, with the bits of the CPU backend: one warp owns one head of one
// row, and nothing passes between warps but the row's angles.
#ifndef HALLMARK_KERNELS_MIXERS_ATTENTION_INPUTS_H_
#define HALLMARK_KERNELS_MIXERS_ATTENTION_INPUTS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/mixers/attention_shape.h"

namespace hallmark {

struct AttentionInputWeights {
  const float* q_norm = nullptr;    // [head_dim], zero-centred: the factor is 1 + w
  const float* k_norm = nullptr;    // [head_dim]
  const float* inv_freq = nullptr;  // [rotary_dim / 2]
  int rotary_dim = 0;               // even, 2 .. head_dim
  float eps = 0.0f;
};

// Row i stands at *kv.position + i of one sequence. q_gate [rows, heads * 2 * head_dim], per head
// [query | gate]; k and v [rows, kv_heads * head_dim]; q [rows, heads * head_dim].
//   q = bf16(rope(norm(query))), kept as fp32; K = rope(norm(k)) and V = v, each rounded once from
//   fp32 to the pages' format (fp8 saturates at 448).
// norm: x * r * (1 + w), r = 1 / sqrt(sum / head_dim + eps), the sum of squares in 16 interleaved
// partials per block of 128, folded 8, 4, 2, 1 apart, blocks in order from zero. rope: the angle is
// the fp32 product of position and inv_freq.
// Any head_dim that is a multiple of 128; the pages cover the rows' positions. Writes nothing else.
// cudaErrorInvalidValue for any other shape.
cudaError_t LaunchAttentionInputs(const AttentionShape& shape, KvFormat format,
                                  const AttentionInputWeights& weights, const KvPlace& kv,
                                  int64_t rows, const float* q_gate, const float* k, const float* v,
                                  float* q, cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_MIXERS_ATTENTION_INPUTS_H_
