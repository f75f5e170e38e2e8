// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/ref/draft.h"

#include <algorithm>
#include <cmath>

#include "engine/base/blocked_sum.h"
#include "engine/base/elementary.h"

namespace hallmark {
namespace {

// tanh by e^(-2|x|): odd, and 1 where the exponential vanishes.
float Tanh(float x) {
  const float e = Exp(-2.0f * std::fabs(x));
  const float value = (1.0f - e) / (1.0f + e);
  return x < 0.0f ? -value : value;
}

}  // namespace

void RefPlainRmsNorm(const float* x, const float* weight, int64_t count, float eps, float* out) {
  const float sum = BlockedSum(count, [x](int64_t i) { return x[i] * x[i]; });
  const float r = 1.0f / std::sqrt(sum / static_cast<float>(count) + eps);
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] * r * weight[i];
}

void RefDraftAttention(const float* q, const float* const* keys, const float* const* values,
                       int64_t count, int64_t head_dim, float scale, float* scores, float* out) {
  for (int64_t t = 0; t < count; ++t) {
    const float* key = keys[t];
    scores[t] = BlockedSum(head_dim, [&](int64_t d) { return q[d] * key[d]; }) * scale;
  }
  const float highest = *std::max_element(scores, scores + count);
  for (int64_t t = 0; t < count; ++t) scores[t] = Exp(scores[t] - highest);
  const float sum = BlockedSum(count, [scores](int64_t t) { return scores[t]; });
  std::fill_n(out, head_dim, 0.0f);
  for (int64_t t = 0; t < count; ++t) {
    const float* value = values[t];
    const float p = scores[t];
    for (int64_t d = 0; d < head_dim; ++d) out[d] += p * value[d];
  }
  for (int64_t d = 0; d < head_dim; ++d) out[d] /= sum;
}

void RefDynamicConv(const float* x, int64_t channels, const float* base, const float* dyn,
                    int64_t kernel, int64_t group, int64_t row_in_block, float* out) {
  const int64_t groups = channels / group;
  std::fill_n(out, channels, 0.0f);
  for (int64_t t = 0; t < kernel && t <= row_in_block; ++t) {
    const float* source = x - t * channels;
    for (int64_t g = 0; g < groups; ++g) {
      const float shared = dyn[t * groups + g];
      for (int64_t c = g * group; c < (g + 1) * group; ++c) {
        out[c] += (base[t * channels + c] + shared) * source[c];
      }
    }
  }
}

float RefScaleLogit(float value, float multiplier, float softcap) {
  const float scaled = value * multiplier;
  return softcap == 0.0f ? scaled : softcap * Tanh(scaled / softcap);
}

void RefTopColumns(const float* values, int64_t size, int64_t count, int32_t* columns,
                   float* best) {
  int64_t held = 0;
  for (int64_t i = 0; i < size; ++i) {
    // An equal value further right never displaces one that is held.
    if (held == count && !(values[i] > best[count - 1])) continue;
    int64_t at = held < count ? held++ : count - 1;
    for (; at > 0 && values[i] > best[at - 1]; --at) {
      best[at] = best[at - 1];
      columns[at] = columns[at - 1];
    }
    best[at] = values[i];
    columns[at] = static_cast<int32_t>(i);
  }
}

}  // namespace hallmark
