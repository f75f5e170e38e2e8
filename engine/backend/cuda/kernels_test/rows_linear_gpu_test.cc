// SPDX-License-Identifier: Apache-2.0
// Plain and 4-bit linears against their scalar definitions, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "engine/backend/cpu/ref/affine_linear.h"
#include "engine/backend/cpu/ref/plain_linear.h"
#include "engine/backend/cuda/kernels_test/device_array.h"
#include "engine/backend/cuda/kernels_test/float_data.h"
#include "engine/base/float_types.h"
#include "kernels/rows/affine_linear.h"
#include "kernels/rows/plain_linear.h"

namespace hallmark {
namespace {

// A weight on both sides; `wide` holds the stored values, widened.
struct TestWeight {
  TestWeight(ElementType type, int64_t n, int64_t k, bool with_bias) : n(n), k(k) {
    wide = HardFloats(n * k, n + k);
    if (type == ElementType::kF32) {
      full = std::make_unique<DeviceArray<float>>(wide);
    } else {
      std::vector<uint16_t> stored(wide.size());
      for (size_t i = 0; i < wide.size(); ++i) {
        const bool bf16 = type == ElementType::kBf16;
        stored[i] = bf16 ? FloatToBf16(wide[i]) : FloatToHalf(wide[i]);
        wide[i] = bf16 ? Bf16ToFloat(stored[i]) : HalfToFloat(stored[i]);
      }
      half = std::make_unique<DeviceArray<uint16_t>>(stored);
    }
    if (with_bias) {
      bias = RandomFloats(n, 8);
      device_bias = std::make_unique<DeviceArray<float>>(bias);
    }
    weight = {.type = type,
              .data = full ? static_cast<const void*>(full->data()) : half->data(),
              .bias = with_bias ? device_bias->data() : nullptr,
              .n = n,
              .k = k};
  }

  int64_t n, k;
  std::vector<float> wide, bias;
  std::unique_ptr<DeviceArray<float>> full, device_bias;
  std::unique_ptr<DeviceArray<uint16_t>> half;
  PlainWeight weight;
};

std::vector<float> RunPlain(const TestWeight& test, const std::vector<float>& x, int64_t rows) {
  const DeviceArray<float> in(x), out(static_cast<size_t>(rows * test.n));
  EXPECT_EQ(LaunchPlainLinear(in.data(), rows, test.weight, out.data(), nullptr), cudaSuccess);
  return out.Download();
}

void ExpectPlain(const TestWeight& test, int64_t rows) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << test.k << " to " << test.n);
  const std::vector<float> x = HardFloats(rows * test.k, rows, LargeFor(rows));
  std::vector<float> expected(static_cast<size_t>(rows * test.n));
  RefPlainLinear(x.data(), rows, test.wide.data(), test.bias.empty() ? nullptr : test.bias.data(),
                 test.n, test.k, expected.data());
  ASSERT_EQ(BitDifference(expected, RunPlain(test, x, rows)), "");
}

TEST(PlainLinearGpu, HasTheBitsOfTheDefinition) {
  for (const ElementType type : {ElementType::kBf16, ElementType::kF16, ElementType::kF32}) {
    for (const bool bias : {false, true}) {
      const TestWeight test(type, 48, 300, bias);
      for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 127, 128}) {
        ExpectPlain(test, rows);
      }
    }
    for (const int64_t k : {1, 15, 17, 127, 128, 129, 16 * 128, 16 * 128 + 1}) {
      ExpectPlain(TestWeight(type, 5, k, true), 3);
    }
  }
}

TEST(PlainLinearGpu, TheShapesOfTheModelToo) {
  const TestWeight gates(ElementType::kBf16, 48, 5120, false);
  for (const int64_t rows : {1, 8, 17}) ExpectPlain(gates, rows);
  ExpectPlain(TestWeight(ElementType::kBf16, 2049, 5120, false), 9);  // few slices, ragged columns
  ExpectPlain(TestWeight(ElementType::kF32, 2500, 700, true), 6);
  ExpectPlain(TestWeight(ElementType::kF16, 2500, 129, true), 2);
  ExpectPlain(TestWeight(ElementType::kBf16, 17408, 5120, false), 1);
  ExpectPlain(TestWeight(ElementType::kBf16, 5120, 17408, false), 1);
}

// Clause: row-invariance.
TEST(PlainLinearGpu, ARowIsTheSameAlone) {
  const TestWeight test(ElementType::kBf16, 2200, 1111, true);
  constexpr int64_t kRows = 131;
  const std::vector<float> x = HardFloats(kRows * test.k, 77);
  const std::vector<float> all = RunPlain(test, x, kRows);
  for (const int64_t row : {0, 1, 7, 8, 63, 64, 127, 128, 130}) {
    ASSERT_EQ(BitDifference(RowOf(all, row, test.n), RunPlain(test, RowOf(x, row, test.k), 1)), "");
  }
}

// Clause: slice-equals-parent.
TEST(PlainLinearGpu, SpansAreColumnsOfTheWhole) {
  const TestWeight test(ElementType::kBf16, 4000, 640, true);
  constexpr int64_t kRows = 11;
  const std::vector<float> x = HardFloats(kRows * test.k, 4);
  const std::vector<float> whole = RunPlain(test, x, kRows);
  const LinearSpan spans[] = {{0, 2304}, {3072, 128}, {3968, 32}};
  constexpr int64_t kWidth = 2304 + 128 + 32, kStride = kWidth + 5;
  std::vector<float> expected = RandomFloats(kRows * kStride, 6);  // the gaps stay
  const DeviceArray<float> in(x), out(expected);
  ASSERT_EQ(LaunchPlainLinear(in.data(), kRows, test.weight, spans, out.data(), kStride, nullptr),
            cudaSuccess);
  for (int64_t row = 0; row < kRows; ++row) {
    float* to = expected.data() + row * kStride;
    for (const LinearSpan& span : spans) {
      to = std::copy_n(whole.data() + row * test.n + span.first, span.count, to);
    }
  }
  ASSERT_EQ(BitDifference(expected, out.Download()), "");
  const LinearSpan outside[] = {{3968, 33}};
  EXPECT_EQ(LaunchPlainLinear(in.data(), kRows, test.weight, outside, out.data(), kStride, nullptr),
            cudaErrorInvalidValue);
}

struct TestAffine {
  TestAffine(int64_t n, int64_t k)
      : n(n),
        k(k),
        words(Words(n * k / 8, n + k)),
        scales(RandomFloats(n * k / 64, 1)),
        biases(RandomFloats(n * k / 64, 2)),
        device_words(words),
        device_scales(scales),
        device_biases(biases),
        weight{device_words.data(), device_scales.data(), device_biases.data(), n, k} {}

  static std::vector<uint32_t> Words(int64_t count, uint64_t seed) {
    SplitMix64 random(seed);
    std::vector<uint32_t> words(static_cast<size_t>(count));
    for (uint32_t& word : words) word = static_cast<uint32_t>(random.Next() >> 32);
    return words;
  }

  int64_t n, k;
  std::vector<uint32_t> words;
  std::vector<float> scales, biases;
  DeviceArray<uint32_t> device_words;
  DeviceArray<float> device_scales, device_biases;
  AffineWeight weight;
};

std::vector<float> RunAffine(const TestAffine& test, const std::vector<float>& x, int64_t rows) {
  const DeviceArray<float> in(x), out(static_cast<size_t>(rows * test.n));
  EXPECT_EQ(LaunchAffineLinear(in.data(), rows, test.weight, out.data(), nullptr), cudaSuccess);
  return out.Download();
}

void ExpectAffine(const TestAffine& test, int64_t rows) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << test.k << " to " << test.n);
  const std::vector<float> x = HardFloats(rows * test.k, rows, LargeFor(rows));
  std::vector<float> expected(static_cast<size_t>(rows * test.n));
  RefAffineLinear(x.data(), rows, test.words.data(), test.scales.data(), test.biases.data(), test.n,
                  test.k, expected.data());
  ASSERT_EQ(BitDifference(expected, RunAffine(test, x, rows)), "");
}

TEST(AffineLinearGpu, HasTheBitsOfTheDefinition) {
  const TestAffine small(50, 320);
  for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 127, 128}) {
    ExpectAffine(small, rows);
  }
  for (const int64_t k : {64, 128, 15 * 64, 16 * 64, 17 * 64}) ExpectAffine(TestAffine(7, k), 3);
  const TestAffine wide(2051, 448);
  for (const int64_t rows : {1, 2, 4, 9}) ExpectAffine(wide, rows);
  ExpectAffine(TestAffine(5120, 5120), 1);
  ExpectAffine(TestAffine(300, 17408), 8);
}

// Clauses: row-invariance, slice-equals-parent.
TEST(AffineLinearGpu, RowsAndSpansAreTheSameAlone) {
  const TestAffine test(2432, 640);
  constexpr int64_t kRows = 21;
  const std::vector<float> x = HardFloats(kRows * test.k, 4);
  const std::vector<float> whole = RunAffine(test, x, kRows);
  for (const int64_t row : {0, 7, 8, 20}) {
    ASSERT_EQ(BitDifference(RowOf(whole, row, test.n), RunAffine(test, RowOf(x, row, test.k), 1)),
              "");
  }
  const LinearSpan spans[] = {{128, 256}, {1024, 1408}};
  constexpr int64_t kWidth = 256 + 1408;
  std::vector<float> expected(kRows * kWidth);
  const DeviceArray<float> in(x), out(expected.size());
  ASSERT_EQ(LaunchAffineLinear(in.data(), kRows, test.weight, spans, out.data(), kWidth, nullptr),
            cudaSuccess);
  float* to = expected.data();
  for (int64_t row = 0; row < kRows; ++row) {
    for (const LinearSpan& span : spans) {
      to = std::copy_n(whole.data() + row * test.n + span.first, span.count, to);
    }
  }
  ASSERT_EQ(BitDifference(expected, out.Download()), "");
}

}  // namespace
}  // namespace hallmark
