// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/exl3_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "conformance/harness/random_exl3.h"
#include "engine/backend/exl3_codec.h"

namespace hallmark {
namespace {

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::vector<float> Multiply(const CpuLinear& linear, std::span<const float> x, ThreadPool& pool) {
  const int64_t rows = static_cast<int64_t>(x.size()) / linear.in_features;
  std::vector<float> y(static_cast<size_t>(rows * linear.out_features));
  // Run never writes to x.
  const Status status =
      linear.Run({x.data(), rows, linear.in_features}, {y.data(), rows, linear.out_features}, pool);
  EXPECT_TRUE(status.has_value());
  return y;
}

std::vector<float> Reference(const RandomExl3& layer, std::span<const float> x) {
  const int64_t in = layer.source().in_features;
  const int64_t out = layer.source().out_features;
  const int64_t rows = static_cast<int64_t>(x.size()) / in;
  std::vector<float> y(static_cast<size_t>(rows * out));
  EXPECT_TRUE(RefExl3Linear(layer.operand(), x.data(), rows, in, out, y.data()));
  return y;
}

TEST(Exl3Linear, EveryRateHasTheBitsOfTheDefinitionOnEveryTier) {
  ThreadPool pool(2);
  int compared = 0;
  for (const Exl3Rate rate : AllExl3Rates()) {
    const RandomExl3 layer({.rate = rate,
                            .in_features = 300,
                            .out_features = 333,
                            .input_packed = compared % 2 == 1,
                            .output_packed = compared % 3 == 1,
                            .bias = compared % 2 == 0,
                            .seed = static_cast<uint64_t>(compared) + 1});
    const std::vector<float> x = RandomRows(5, 300, 77);
    const std::vector<float> expected = Reference(layer, x);
    for (const CpuTier tier : SupportedCpuTiers()) {
      const auto linear = CpuLinear::Load(layer.source(), tier);
      ASSERT_TRUE(linear.has_value());
      EXPECT_TRUE(SameBits(Multiply(**linear, x, pool), expected))
          << CodebookName(rate.codebook) << " k2 " << rate.k2 << " " << CpuTierName(tier);
    }
    ++compared;
  }
  EXPECT_EQ(compared, 27);
}

// 8-bit tiles whose bytes run a, 0, a, 1, a, 2 ...: between them they hold all 65536 states.
TEST(Exl3Linear, EveryStateOfEveryCodebookDecodesAlikeOnEveryTier) {
  constexpr int kTiles = 512;
  std::vector<uint16_t> words;
  for (int tile = 0; tile < kTiles; ++tile) {
    for (int i = 0; i < kMaxTileWords; ++i) {
      words.push_back(static_cast<uint16_t>((tile / 2) << 8 | (128 * (tile % 2) + (i ^ 1))));
    }
  }
  for (const Codebook codebook : {Codebook::k3inst, Codebook::kMcg, Codebook::kMul1}) {
    RandomExl3 layer({.rate = {codebook, 16}, .in_features = 128, .out_features = 1024});
    layer.SetTiles(words);
    std::vector<bool> seen(65536);
    std::vector<uint16_t> expected(128 * 1024);
    for (int tile = 0; tile < kTiles; ++tile) {
      const int64_t first = (tile / 64) * 16 * 1024 + (tile % 64) * 16;
      for (int p = 0; p < kTileWeights; ++p) {
        const uint16_t state = StateAt(words.data() + tile * kMaxTileWords, 16, p);
        seen[state] = true;
        const TileElement element = ElementOf(p);
        expected[static_cast<size_t>(first + element.row * 1024 + element.column)] =
            CodebookValue(codebook, state);
      }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 65536);
    for (const CpuTier tier : SupportedCpuTiers()) {
      EXPECT_EQ(DecodeExl3(layer.group(), tier), expected)
          << CodebookName(codebook) << " " << CpuTierName(tier);
    }
  }
}

TEST(Exl3Linear, AnyNumberOfRowsGivesEachRowTheBitsItHasAlone) {
  const RandomExl3 layer(
      {.rate = {Codebook::kMul1, 7}, .in_features = 256, .out_features = 200, .bias = true});
  ThreadPool pool(2);
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = std::move(*CpuLinear::Load(layer.source(), tier));
    const std::vector<float> x = RandomRows(200, 256, 5);
    std::vector<float> alone;
    for (size_t row = 0; row < 200; ++row) {
      const auto y = Multiply(*linear, std::span(x).subspan(row * 256, 256), pool);
      alone.insert(alone.end(), y.begin(), y.end());
    }
    std::vector<size_t> counts = {129, 200};
    for (size_t m = 1; m <= 128; ++m) counts.push_back(m);
    for (const size_t m : counts) {
      EXPECT_TRUE(SameBits(Multiply(*linear, std::span(x).first(m * 256), pool),
                           std::span(alone).first(m * 200)))
          << m << " rows, " << CpuTierName(tier);
    }
  }
}

TEST(Exl3Linear, TheNumberOfThreadsChangesNoBit) {
  const RandomExl3 layer({.in_features = 384, .out_features = 1000});
  const std::vector<float> x = RandomRows(70, 384, 9);
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = std::move(*CpuLinear::Load(layer.source(), tier));
    ThreadPool one(1);
    const std::vector<float> expected = Multiply(*linear, x, one);
    for (const int threads : {2, 3, 8}) {
      ThreadPool pool(threads);
      EXPECT_TRUE(SameBits(Multiply(*linear, x, pool), expected)) << threads;
    }
  }
}

TEST(Exl3Linear, AnInputThatOverflowsFp16IsAnErrorThatNamesTheLayer) {
  const RandomExl3 layer({.in_features = 256, .out_features = 128});
  ThreadPool pool(2);
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = std::move(*CpuLinear::Load(layer.source(), tier));
    for (const float bad : {3.0e6f, -3.0e6f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x = RandomRows(3, 256, 5);
      x[256 + 200] = bad;
      std::vector<float> y(3 * 128);
      const Status status = linear->Run({x.data(), 3, 256}, {y.data(), 3, 128}, pool);
      ASSERT_FALSE(status.has_value()) << bad;
      EXPECT_EQ(status.error().code, Code::kOutOfRange);
      EXPECT_EQ(status.error().where.tensor, "random");
    }
    // The largest input whose rotation still fits.
    std::vector<float> x(256, 0.0f);
    x[0] = 6.0e5f;
    std::vector<float> y(128);
    EXPECT_TRUE(linear->Run({x.data(), 1, 256}, {y.data(), 1, 128}, pool).has_value());
  }
}

TEST(Exl3Linear, MemoryIsThatOfTheTilesOrOfTheScalarTiersValues) {
  const RandomExl3 layer({.rate = {Codebook::kMul1, 5}, .in_features = 512, .out_features = 640});
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = std::move(*CpuLinear::Load(layer.source(), tier));
    const size_t weights = 512 * 640;
    const size_t tiles = tier == CpuTier::kScalar ? weights * sizeof(float) : weights * 5 / 16;
    EXPECT_LE(linear->bytes(), tiles + sizeof(float) * (512 + 640) + 64);
  }
}

}  // namespace
}  // namespace hallmark
