// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/plain_linear.h"

#include <gtest/gtest.h>

#include <vector>

#include "conformance/harness/random_exl3.h"

namespace hallmark {
namespace {

PlainLinear MakePlain(const std::vector<float>& weight, int64_t n, int64_t k) {
  return {.name = "plain",
          .k = k,
          .n = n,
          .weight = {.name = "plain.weight",
                     .dtype = DType::kF32,
                     .shape = {n, k},
                     .bytes = std::as_bytes(std::span(weight))}};
}

// fma(a, a, -1) with a = 1 + 2^-12 keeps 2^-24, which a rounded product loses.
TEST(PlainLinear, ProductsAreRoundedBeforeTheyAreAdded) {
  const float a = 1.0f + 0x1p-12f;
  std::vector<float> weight(17, 0.0f);
  std::vector<float> x(17, 0.0f);
  weight[0] = -1.0f;
  x[0] = 1.0f + 0x1p-11f;
  weight[16] = a;  // the same partial sum, one step later
  x[16] = a;
  ThreadPool pool(1);
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = std::move(*CpuLinear::Load({17, 1, MakePlain(weight, 1, 17)}, tier));
    float y = 1.0f;
    ASSERT_TRUE(linear->Run({x.data(), 1, 17}, {&y, 1, 1}, pool).has_value());
    EXPECT_EQ(y, 0.0f) << CpuTierName(tier);
  }
}

TEST(PlainLinear, TheInputIsNotRoundedToFp16) {
  const std::vector<float> weight = {1.0f};
  const float x = 1.0f + 0x1p-20f;
  ThreadPool pool(1);
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = std::move(*CpuLinear::Load({1, 1, MakePlain(weight, 1, 1)}, tier));
    float y = 0.0f;
    ASSERT_TRUE(linear->Run({&x, 1, 1}, {&y, 1, 1}, pool).has_value());
    EXPECT_EQ(y, x) << CpuTierName(tier);
  }
}

TEST(PlainLinear, RowsBeyondOneGroupEqualTheRowAlone) {
  const std::vector<float> weight = RandomRows(70, 200, 3);
  const std::vector<float> x = RandomRows(130, 200, 4);
  ThreadPool pool(2);
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = std::move(*CpuLinear::Load({200, 70, MakePlain(weight, 70, 200)}, tier));
    std::vector<float> all(130 * 70);
    ASSERT_TRUE(linear->Run({x.data(), 130, 200}, {all.data(), 130, 70}, pool).has_value());
    for (int64_t row = 0; row < 130; ++row) {
      std::vector<float> alone(70);
      ASSERT_TRUE(
          linear->Run({x.data() + row * 200, 1, 200}, {alone.data(), 1, 70}, pool).has_value());
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + row * 70)) << row;
    }
  }
}

TEST(PlainLinear, AnotherTypeIsRefusedByTensorName) {
  const std::vector<float> weight(4, 1.0f);
  PlainLinear plain = MakePlain(weight, 2, 2);
  plain.weight.dtype = DType::kI32;
  const auto linear = CpuLinear::Load({2, 2, plain}, CpuTier::kScalar);
  ASSERT_FALSE(linear.has_value());
  EXPECT_EQ(linear.error().code, Code::kUnsupported);
  EXPECT_EQ(linear.error().where.tensor, "plain.weight");
}

}  // namespace
}  // namespace hallmark
