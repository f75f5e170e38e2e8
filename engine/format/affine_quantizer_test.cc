// SPDX-License-Identifier: Apache-2.0
#include "engine/format/affine_quantizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "engine/base/float_types.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

PlainLinear PlainOf(const std::vector<float>& w, int64_t n, int64_t k) {
  return {.name = "m",
          .k = k,
          .n = n,
          .weight = {.name = "m.weight",
                     .dtype = DType::kF32,
                     .shape = {n, k},
                     .bytes = std::as_bytes(std::span(w)),
                     .file = "f"}};
}

uint16_t Half(const std::vector<std::byte>& bytes, size_t index) {
  uint16_t value;
  std::memcpy(&value, bytes.data() + 2 * index, 2);
  return value;
}
uint32_t Nibble(const QuantizedAffine& q, size_t element) {
  uint32_t word;
  std::memcpy(&word, q.words.data() + element / 8 * 4, 4);
  return (word >> (4 * (element % 8))) & 15u;
}

TEST(AffineQuantizer, FollowsTheRuleForEveryGroup) {
  SplitMix64 random(5);
  std::vector<float> w(6 * 192);
  for (float& value : w) value = RoundToBf16(random.NextNormal() * 0.05f);
  const auto quantized = QuantizeAffine(PlainOf(w, 6, 192));
  ASSERT_TRUE(quantized.has_value());
  const auto& affine = std::get<AffineLinear>(quantized->source.weights);
  EXPECT_EQ(affine.weight.shape, (std::vector<int64_t>{6, 24}));
  EXPECT_EQ(affine.scales.shape, (std::vector<int64_t>{6, 3}));
  for (size_t g = 0; g < 18; ++g) {
    const float lo = *std::min_element(w.begin() + g * 64, w.begin() + (g + 1) * 64);
    const float hi = *std::max_element(w.begin() + g * 64, w.begin() + (g + 1) * 64);
    EXPECT_EQ(Half(quantized->scales, g), FloatToBf16((hi - lo) / 15.0f));
    EXPECT_EQ(Half(quantized->biases, g), FloatToBf16(lo));
    const float s = Bf16ToFloat(Half(quantized->scales, g));
    const float b = Bf16ToFloat(Half(quantized->biases, g));
    for (size_t i = g * 64; i < (g + 1) * 64; ++i) {
      const double q = std::nearbyint(static_cast<double>((w[i] - b) / s));
      EXPECT_EQ(Nibble(*quantized, i), static_cast<uint32_t>(std::clamp(q, 0.0, 15.0)));
    }
  }
}

TEST(AffineQuantizer, TiesGoToEvenAndEqualValuesKeepAScale) {
  std::vector<float> w(128, 0.0f);
  w[63] = 15.0f;  // a step of one
  w[1] = 2.5f;
  w[2] = 3.5f;
  w[3] = 0.5f;
  const auto quantized = QuantizeAffine(PlainOf(w, 1, 128));
  ASSERT_TRUE(quantized.has_value());
  EXPECT_EQ(Nibble(*quantized, 1), 2u);
  EXPECT_EQ(Nibble(*quantized, 2), 4u);
  EXPECT_EQ(Nibble(*quantized, 3), 0u);
  EXPECT_EQ(Nibble(*quantized, 63), 15u);
  EXPECT_EQ(Half(quantized->scales, 1), FloatToBf16(1e-8f));
}

TEST(AffineQuantizer, AValueThatIsNotFiniteIsNamed) {
  std::vector<float> w(64, 1.0f);
  w[7] = std::numeric_limits<float>::quiet_NaN();
  const auto quantized = QuantizeAffine(PlainOf(w, 1, 64));
  ASSERT_FALSE(quantized.has_value());
  EXPECT_EQ(quantized.error().code, Code::kOutOfRange);
  EXPECT_EQ(quantized.error().where.tensor, "m.weight");
}

}  // namespace
}  // namespace hallmark
