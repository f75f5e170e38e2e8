// SPDX-License-Identifier: Apache-2.0
// Inputs of kernel tests, from a seed, and the comparison of results as bits.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_FLOAT_DATA_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_FLOAT_DATA_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/random.h"

namespace hallmark {

// Values in [-1, 1) with a spread of magnitudes, as activations and weights have.
inline std::vector<float> RandomFloats(int64_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    const float sign = random.NextSigned();
    value = sign * random.NextSigned();
  }
  return values;
}

// The same, one in eight replaced by what arithmetic likes to lose: zeros of both signs, subnormal
// and very small numbers, and, up to `large`, big ones. Where `large` is far above 1, sums hide
// what the other terms did: most cases leave it near 1.
inline std::vector<float> HardFloats(int64_t count, uint64_t seed, float large = 3.0f) {
  std::vector<float> values = RandomFloats(count, seed);
  const float hard[] = {-0.0f, 0.0f, 1e-40f, -1e-45f, 1.2e-38f, large, -large, 1e-20f};
  SplitMix64 random(seed + 1);
  for (float& value : values) {
    const uint64_t draw = random.Below(64);
    if (draw < 8) value = hard[draw];
  }
  return values;
}

// `large` for a case of `rows` rows: huge where they are even.
inline float LargeFor(int64_t rows) { return rows % 2 == 0 ? 1e30f : 3.0f; }

// Empty if both hold the same bits, -0 apart from 0, and hold something; else what differs.
template <typename T>
std::string BitDifference(const std::vector<T>& expected, const std::vector<T>& found) {
  if (expected.empty()) return "nothing to compare";
  if (expected.size() != found.size()) {
    return std::to_string(found.size()) + " elements, expected " + std::to_string(expected.size());
  }
  size_t count = 0;
  size_t first = 0;
  for (size_t i = expected.size(); i-- > 0;) {
    if (std::memcmp(&expected[i], &found[i], sizeof(T)) == 0) continue;
    ++count;
    first = i;
  }
  if (count == 0) return {};
  return std::to_string(count) + " of " + std::to_string(expected.size()) + " differ, element " +
         std::to_string(first) + " first: " + std::to_string(found[first]) + ", expected " +
         std::to_string(expected[first]);
}

// Row `row` of [.., cols].
template <typename T>
std::vector<T> RowOf(const std::vector<T>& all, int64_t row, int64_t cols) {
  return std::vector<T>(all.begin() + row * cols, all.begin() + (row + 1) * cols);
}

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_FLOAT_DATA_H_
