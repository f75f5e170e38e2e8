// SPDX-License-Identifier: Apache-2.0
// Clause: decode-exact
#include "conformance/validate/exl3_matrix.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "conformance/harness/random_exl3.h"
#include "conformance/validate/error_band.h"
#include "engine/base/float_types.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

TEST(TileDecoder, GivesWhatTheDefinitionGivesAtEveryRate) {
  SplitMix64 random(1);
  for (const Exl3Rate rate : AllExl3Rates()) {
    const TileDecoder decoder(rate);
    for (int tile = 0; tile < 20; ++tile) {
      std::array<uint16_t, kMaxTileWords> words{};
      for (uint16_t& word : words) word = random.NextU16();
      std::array<uint16_t, kTileWeights> expected;
      DecodeTile(words.data(), rate, expected.data());
      // At an odd address, as in a real file.
      std::array<std::byte, 2 * kMaxTileWords + 1> stored;
      std::memcpy(stored.data() + 1, words.data(), 2 * kMaxTileWords);
      std::array<float, 16 * 20> actual{};
      decoder.Decode(stored.data() + 1, actual.data(), 20);
      for (int row = 0; row < 16; ++row) {
        for (int column = 0; column < 16; ++column) {
          ASSERT_EQ(actual[static_cast<size_t>(row * 20 + column)],
                    HalfToFloat(expected[static_cast<size_t>(row * 16 + column)]))
              << CodebookName(rate.codebook) << " " << rate.k2;
        }
      }
    }
  }
}

double Hadamard(int64_t i, int64_t j) {
  const bool odd = __builtin_popcountll(static_cast<uint64_t>(i & j)) % 2 != 0;
  return (odd ? -1 : 1) / std::sqrt(128.0);
}

// W = diag(suh) H W_q H diag(svh), element by element in fp64.
void ExpectDefinition(const RandomExl3Options& options) {
  const RandomExl3 linear(options);
  const Exl3Group& group = linear.group();
  const auto matrix = Exl3Matrix::Open(group);
  ASSERT_TRUE(matrix.has_value());
  const Exl3Operand operand = linear.operand();
  SplitMix64 random(options.seed);
  std::vector<float> block(static_cast<size_t>(Exl3Matrix::kBlockValues));
  for (int64_t i = 0; i < matrix->input_blocks(); ++i) {
    for (int64_t j = 0; j < matrix->output_blocks(); ++j) {
      matrix->Block(i, j, block.data());
      std::vector<uint16_t> decoded(128 * 128);
      for (int64_t tile = 0; tile < 64; ++tile) {
        std::vector<uint16_t> words(static_cast<size_t>(TileWords(group.k2)));
        const int64_t index = (i * 8 + tile / 8) * (group.n / 16) + j * 8 + tile % 8;
        std::memcpy(words.data(),
                    group.trellis.bytes.data() + static_cast<size_t>(index) * 2 * words.size(),
                    2 * words.size());
        std::array<uint16_t, kTileWeights> values;
        DecodeTile(words.data(), {group.codebook, group.k2}, values.data());
        for (int64_t p = 0; p < 256; ++p) {
          const int64_t row = tile / 8 * 16 + p / 16;
          decoded[static_cast<size_t>(row * 128 + tile % 8 * 16 + p % 16)] =
              values[static_cast<size_t>(p)];
        }
      }
      for (int sample = 0; sample < 20; ++sample) {
        const auto row = static_cast<int64_t>(random.Below(128));
        const auto column = static_cast<int64_t>(random.Below(128));
        double sum = 0;
        for (int64_t a = 0; a < 128; ++a) {
          for (int64_t b = 0; b < 128; ++b) {
            sum += Hadamard(row, a) * HalfToFloat(decoded[static_cast<size_t>(a * 128 + b)]) *
                   Hadamard(b, column);
          }
        }
        sum *= double{operand.suh[i * 128 + row]} * operand.svh[j * 128 + column];
        ASSERT_NEAR(block[static_cast<size_t>(row * 128 + column)], sum, 1e-5);
      }
    }
  }
}

TEST(Exl3Matrix, IsTheDefinition) {
  ExpectDefinition({.in_features = 256, .out_features = 128, .seed = 3});
  ExpectDefinition({.rate = {Codebook::k3inst, 4}, .in_features = 128, .out_features = 256});
  ExpectDefinition({.rate = {Codebook::kMul1, 5}, .input_packed = true, .output_packed = true});
}

TEST(ErrorBand, IsOrderedAtEveryRateAndTwoRatesApartDoNotMeet) {
  for (const Exl3Rate rate : AllExl3Rates()) {
    const ErrorBand band = ErrorBandOf(rate);
    EXPECT_GT(band.least, 0);
    EXPECT_LT(band.least, std::exp2(-rate.k2)) << rate.k2;  // no code of the rate is better
    EXPECT_GT(band.middle, std::exp2(-rate.k2));
    EXPECT_LT(band.middle, band.most);
    EXPECT_LT(band.most, band.gross);
    if (rate.k2 % 2 == 0 && rate.k2 > 2) {
      EXPECT_LT(band.most, ErrorBandOf({rate.codebook, rate.k2 - 2}).middle) << rate.k2;
    }
  }
}

}  // namespace
}  // namespace hallmark
