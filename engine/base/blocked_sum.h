// SPDX-License-Identifier: Apache-2.0
// The one order of summation: 16 interleaved fp32 partial sums per block of 128
// terms, folded pairwise (8, 4, 2, 1 apart), blocks added in order from zero. Terms are rounded to
// fp32 before they are added: there is no fused multiply-add in the definition.
#ifndef HALLMARK_ENGINE_BASE_BLOCKED_SUM_H_
#define HALLMARK_ENGINE_BASE_BLOCKED_SUM_H_

#include <cstdint>

namespace hallmark {

inline constexpr int64_t kSumBlock = 128;
inline constexpr int64_t kSumLanes = 16;

// Sum of term(0) ... term(count - 1).
template <typename Term>
float BlockedSum(int64_t count, const Term& term) {
  float total = 0.0f;
  for (int64_t start = 0; start < count; start += kSumBlock) {
    float partial[kSumLanes] = {};
    for (int64_t i = start; i < start + kSumBlock && i < count; ++i) {
      partial[(i - start) % kSumLanes] += term(i);
    }
    for (int64_t step = kSumLanes / 2; step > 0; step /= 2) {
      for (int64_t j = 0; j < step; ++j) partial[j] += partial[j + step];
    }
    total += partial[0];
  }
  return total;
}

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_BLOCKED_SUM_H_
