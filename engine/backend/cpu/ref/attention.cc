// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/ref/attention.h"

#include <algorithm>
#include <limits>

#include "engine/base/blocked_sum.h"
#include "engine/base/elementary.h"
#include "engine/base/float_types.h"

namespace hallmark {

void ResetSoftmax(SoftmaxState& state, int64_t head_dim) {
  state.max = -std::numeric_limits<float>::infinity();
  state.sum = 0.0f;
  std::fill_n(state.values, head_dim, 0.0f);
}

void RefAttentionTile(const float* query, const float* keys, const float* values, int64_t count,
                      int64_t head_dim, float scale, SoftmaxState& chunk) {
  float score[kAttentionTile];
  float highest = chunk.max;
  for (int64_t t = 0; t < count; ++t) {
    const float* key = keys + t * head_dim;
    score[t] = BlockedSum(head_dim, [&](int64_t d) { return query[d] * key[d]; }) * scale;
    highest = std::max(highest, score[t]);
  }
  const float keep = Exp(chunk.max - highest);  // 0 at the first tile
  float probability[kAttentionTile];
  for (int64_t t = 0; t < count; ++t) probability[t] = Exp(score[t] - highest);
  chunk.max = highest;
  chunk.sum = chunk.sum * keep + BlockedSum(count, [&](int64_t t) { return probability[t]; });
  for (int64_t d = 0; d < head_dim; ++d) {
    float value = chunk.values[d] * keep;
    for (int64_t t = 0; t < count; ++t) {
      value += RoundToBf16(probability[t]) * values[t * head_dim + d];
    }
    chunk.values[d] = value;
  }
}

void RefAttentionMerge(const SoftmaxState& chunk, int64_t head_dim, SoftmaxState& total) {
  const float highest = std::max(total.max, chunk.max);
  const float keep = Exp(total.max - highest);  // 0 for the first chunk
  const float add = Exp(chunk.max - highest);
  total.max = highest;
  total.sum = total.sum * keep + chunk.sum * add;
  for (int64_t d = 0; d < head_dim; ++d) {
    total.values[d] = total.values[d] * keep + chunk.values[d] * add;
  }
}

}  // namespace hallmark
