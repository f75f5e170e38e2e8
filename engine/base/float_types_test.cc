// SPDX-License-Identifier: Apache-2.0
#include "engine/base/float_types.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "engine/base/random.h"

namespace hallmark {
namespace {

TEST(Half, EveryPatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value))));
    } else {
      ASSERT_EQ(FloatToHalf(value), half);
    }
  }
}

TEST(Half, RoundsToNearestTiesToEven) {
  // Between every two neighbours: just below, at and just above the midpoint.
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const uint16_t low = static_cast<uint16_t>(bits);
    const double middle =
        (static_cast<double>(HalfToFloat(low)) + HalfToFloat(static_cast<uint16_t>(bits + 1))) / 2;
    const uint16_t even = (bits & 1) ? static_cast<uint16_t>(bits + 1) : low;
    ASSERT_EQ(DoubleToHalf(middle), even);
    ASSERT_EQ(DoubleToHalf(std::nextafter(middle, 0.0)), low);
    ASSERT_EQ(DoubleToHalf(std::nextafter(middle, 1e9)), bits + 1);
  }
}

TEST(Half, OverflowAndSpecials) {
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7C00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xFC00);
  EXPECT_EQ(FloatToHalf(-0.0f), 0x8000);
  EXPECT_EQ(FloatToHalf(0x1p-26f), 0x0000);
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Bf16, RoundsToNearestTiesToEven) {
  EXPECT_EQ(FloatToBf16(1.0f), 0x3F80);
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3F808000u)), 0x3F80);  // tie to even
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3F818000u)), 0x3F82);
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3F808001u)), 0x3F81);
  EXPECT_TRUE(std::isnan(RoundToBf16(std::bit_cast<float>(0x7F800001u))));
}

TEST(Fp8, AllPatternsSurviveTheRoundTrip) {
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const uint8_t code = static_cast<uint8_t>(bits);
    const float value = Fp8E4m3ToFloat(code);
    if ((bits & 0x7F) == 0x7F) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(Fp8E4m3ToFloat(FloatToFp8E4m3(value))));
    } else {
      ASSERT_EQ(FloatToFp8E4m3(value), code);
    }
  }
}

TEST(Fp8, RoundsToNearestTiesToEvenAndSaturates) {
  for (uint32_t bits = 0; bits < 0x7E; ++bits) {
    const float low = Fp8E4m3ToFloat(static_cast<uint8_t>(bits));
    const float high = Fp8E4m3ToFloat(static_cast<uint8_t>(bits + 1));
    const float middle = (low + high) / 2;
    ASSERT_EQ(FloatToFp8E4m3(middle), (bits & 1) ? bits + 1 : bits);
    ASSERT_EQ(FloatToFp8E4m3(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(FloatToFp8E4m3(std::nextafter(middle, 1e9f)), bits + 1);
  }
  EXPECT_EQ(FloatToFp8E4m3(449.0f), 0x7E);
  EXPECT_EQ(FloatToFp8E4m3(1e30f), 0x7E);
  EXPECT_EQ(FloatToFp8E4m3(-std::numeric_limits<float>::infinity()), 0xFE);
}

}  // namespace
}  // namespace hallmark
