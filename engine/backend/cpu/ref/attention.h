// SPDX-License-Identifier: Apache-2.0
// Scalar definition of attention of one query over keys cut at absolute positions: 64-key tiles of
// 512-key chunks, online softmax inside a chunk from its own start, chunks merged in key order. So
// a row's bits depend on its position alone, not on who shares the call.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_REF_ATTENTION_H_
#define HALLMARK_ENGINE_BACKEND_CPU_REF_ATTENTION_H_

#include <cstdint>

namespace hallmark {

inline constexpr int64_t kAttentionTile = 64;
inline constexpr int64_t kAttentionChunk = 512;

// Softmax in progress: maximum, sum of exp(score - maximum), and values weighted alike.
struct SoftmaxState {
  float max;
  float sum;
  float* values;  // [head_dim]
};

// Empties `state` over values [head_dim].
void ResetSoftmax(SoftmaxState& state, int64_t head_dim);

// Adds `count` (1..64) keys of one tile: keys and values [count, head_dim] widened to fp32, query
// [head_dim]. score = (q . k) * scale, q . k a BlockedSum; probabilities join `sum` (a BlockedSum)
// unrounded and `values` (key by key) rounded to bf16.
void RefAttentionTile(const float* query, const float* keys, const float* values, int64_t count,
                      int64_t head_dim, float scale, SoftmaxState& chunk);

// total <- merge(total, chunk), chunk being the later one in key order.
void RefAttentionMerge(const SoftmaxState& chunk, int64_t head_dim, SoftmaxState& total);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_REF_ATTENTION_H_
