// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/exl3_codec.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "engine/base/float_types.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

TEST(Exl3Codec, ThereAreTwentySevenRatesAndHalfWidthsBelongToMul1) {
  std::set<std::pair<int, int>> seen;
  for (const Exl3Rate rate : AllExl3Rates()) {
    EXPECT_TRUE(seen.emplace(static_cast<int>(rate.codebook), rate.k2).second);
    EXPECT_TRUE(rate.k2 % 2 == 0 || rate.codebook == Codebook::kMul1);
  }
  EXPECT_EQ(seen.size(), 27u);
}

TEST(Exl3Codec, OwnBitsAddUpToTheEndAndATileIsFull) {
  for (const Exl3Rate rate : AllExl3Rates()) {
    int end = 0;
    for (int p = 0; p < kTileWeights; ++p) {
      end += OwnBits(rate.k2, p);
      EXPECT_EQ(EndBit(rate.k2, p), end);
    }
    EXPECT_EQ(end, 16 * TileWords(rate.k2));
  }
}

TEST(Exl3Codec, EveryElementOfATileHasOnePosition) {
  std::set<int> seen;
  for (int p = 0; p < kTileWeights; ++p) {
    const TileElement element = ElementOf(p);
    seen.insert(element.row * kTileSide + element.column);
  }
  EXPECT_EQ(seen.size(), 256u);
  EXPECT_EQ(*seen.rbegin(), 255);
  // Lane 0 holds rows 0, 1, 8, 9 of columns 0 and 8.
  EXPECT_EQ(ElementOf(3).row, 9);
  EXPECT_EQ(ElementOf(4).column, 8);
}

TEST(Exl3Codec, ReadsBitsFromTheTopOfLittleEndianPairs) {
  // At 8 bits a weight position 1 covers stream bits 0..15: the high half of the first pair, which
  // is the second word.
  std::vector<uint16_t> words(kMaxTileWords, 0);
  words[1] = 0xABCD;
  words[0] = 0x1234;
  EXPECT_EQ(StateAt(words.data(), 16, 1), 0xABCD);
  EXPECT_EQ(StateAt(words.data(), 16, 2), 0xCD12);
  EXPECT_EQ(StateAt(words.data(), 16, 3), 0x1234);
}

TEST(Exl3Codec, TheFirstWindowWrapsToTheEndOfTheTile) {
  std::vector<uint16_t> words(TileWords(2), 0);
  words[14] = 0x7FFF;  // stream bits 241..255 are ones
  EXPECT_EQ(StateAt(words.data(), 2, 0), 0xFFFE);
  EXPECT_EQ(StateAt(words.data(), 2, 14), 0x8000);
  EXPECT_EQ(StateAt(words.data(), 2, 15), 0x0000);
}

TEST(Exl3Codec, Mul1IsRoundedOnceFromTheExactValue) {
  // A separate multiplication and addition in fp16 gives other bits for many states.
  int differs = 0;
  for (int state = 0; state < 65536; ++state) {
    const uint32_t x = static_cast<uint32_t>(state) * 0x83DCD12Du;
    const uint32_t sum = (x & 0xFF) + ((x >> 8) & 0xFF) + ((x >> 16) & 0xFF) + (x >> 24);
    const uint16_t once = DoubleToHalf((1024.0 + sum) * HalfToFloat(0x1EEE) + HalfToFloat(0xC931));
    EXPECT_EQ(CodebookValue(Codebook::kMul1, static_cast<uint16_t>(state)), once);
    const float product = HalfToFloat(DoubleToHalf((1024.0 + sum) * HalfToFloat(0x1EEE)));
    differs += FloatToHalf(product + HalfToFloat(0xC931)) != once ? 1 : 0;
  }
  EXPECT_GT(differs, 1000);
}

TEST(Exl3Codec, ABrokenRingIsNotARing) {
  std::vector<uint16_t> words(TileWords(6));
  SplitMix64 random(5);
  for (uint16_t& word : words) word = random.NextU16();
  std::array<uint16_t, kTileWeights> states;
  for (int p = 0; p < kTileWeights; ++p) {
    states[static_cast<size_t>(p)] = StateAt(words.data(), 6, p);
  }
  EXPECT_TRUE(IsRing(states, 6));
  for (const size_t p : {size_t{0}, size_t{100}, size_t{255}}) {
    auto broken = states;
    broken[p] ^= 0x0008;  // a bit that the next three states repeat
    EXPECT_FALSE(IsRing(broken, 6)) << p;
  }
}

}  // namespace
}  // namespace hallmark
