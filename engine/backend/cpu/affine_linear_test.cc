// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/affine_linear.h"

#include <gtest/gtest.h>

#include <vector>

#include "conformance/harness/random_exl3.h"

namespace hallmark {
namespace {

LinearSource SourceOf(const std::vector<uint32_t>& words, const std::vector<float>& scales,
                      const std::vector<float>& biases, int64_t n, int64_t k) {
  const auto view = [](const auto& values, DType dtype, std::vector<int64_t> shape) {
    return TensorView{.name = "m",
                      .dtype = dtype,
                      .shape = std::move(shape),
                      .bytes = std::as_bytes(std::span(values))};
  };
  return {k, n,
          AffineLinear{.name = "m",
                       .k = k,
                       .n = n,
                       .weight = view(words, DType::kU32, {n, k / 8}),
                       .scales = view(scales, DType::kF32, {n, k / 64}),
                       .biases = view(biases, DType::kF32, {n, k / 64})}};
}

// One nibble at a time: element 8m + j of output c is bits 4j .. 4j + 3 of word m.
TEST(AffineLinear, EveryNibbleMeetsItsInput) {
  constexpr int64_t kOutputs = 18;
  constexpr int64_t kInputs = 128;
  ThreadPool pool(1);
  for (const CpuTier tier : SupportedCpuTiers()) {
    for (int64_t i = 0; i < kInputs; ++i) {
      std::vector<uint32_t> words(kOutputs * kInputs / 8, 0);
      for (int64_t c = 0; c < kOutputs; ++c) {
        words[c * kInputs / 8 + i / 8] = static_cast<uint32_t>(c % 16) << (4 * (i % 8));
      }
      const std::vector<float> scales(kOutputs * 2, 2.0f);
      const std::vector<float> biases(kOutputs * 2, 0.0f);
      const auto linear =
          std::move(*CpuLinear::Load(SourceOf(words, scales, biases, kOutputs, kInputs), tier));
      std::vector<float> x(kInputs, 0.0f);
      x[i] = 1.0f;
      std::vector<float> y(kOutputs);
      ASSERT_TRUE(linear->Run({x.data(), 1, kInputs}, {y.data(), 1, kOutputs}, pool).has_value());
      for (int64_t c = 0; c < kOutputs; ++c) EXPECT_EQ(y[c], 2.0f * static_cast<float>(c % 16));
    }
  }
}

TEST(AffineLinear, TheBiasMeetsTheGroupsSum) {
  const std::vector<uint32_t> words(16, 0);
  const std::vector<float> scales(2, 1.0f);
  const std::vector<float> biases = {0.5f, -2.0f};
  std::vector<float> x(128, 1.0f);
  x[100] = 3.0f;
  ThreadPool pool(1);
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = std::move(*CpuLinear::Load(SourceOf(words, scales, biases, 1, 128), tier));
    float y = 0.0f;
    ASSERT_TRUE(linear->Run({x.data(), 1, 128}, {&y, 1, 1}, pool).has_value());
    EXPECT_EQ(y, 0.5f * 64.0f - 2.0f * 66.0f);
  }
}

TEST(AffineLinear, ScalesOfAnotherTypeAreNamed) {
  const std::vector<uint32_t> words(8, 0);
  const std::vector<float> one(1, 1.0f);
  LinearSource source = SourceOf(words, one, one, 1, 64);
  std::get<AffineLinear>(source.weights).scales.dtype = DType::kI32;
  const auto linear = CpuLinear::Load(source, CpuTier::kScalar);
  ASSERT_FALSE(linear.has_value());
  EXPECT_EQ(linear.error().code, Code::kUnsupported);
  EXPECT_EQ(linear.error().where.tensor, "m");
}

}  // namespace
}  // namespace hallmark
