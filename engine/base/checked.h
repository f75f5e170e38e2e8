// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes that come from untrusted bytes: nullopt instead of a wrapped value.
#ifndef HALLMARK_ENGINE_BASE_CHECKED_H_
#define HALLMARK_ENGINE_BASE_CHECKED_H_

#include <cstdint>
#include <optional>

namespace hallmark {

inline std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Smallest multiple of `step` that is >= value. step > 0 and the result must fit.
constexpr int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_CHECKED_H_
