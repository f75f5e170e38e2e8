// SPDX-License-Identifier: Apache-2.0
#include "engine/run/sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace hallmark {
namespace {

TEST(SamplerKey, MatchesPublishedKeys) {
  EXPECT_EQ(SamplerKey(0, 0, 0), 0x33fe8bd4f9c57863ull);
  EXPECT_EQ(SamplerKey(7, 11, 13), 0xffa4c0c9f2757968ull);
  EXPECT_EQ(SamplerUniform(SamplerKey(7, 11, 13)), 0x1.ff498193e4eb0p-1);
  EXPECT_EQ(SamplerKey(1234, 128, 248319), 0x878ef1c0a1746431ull);
  EXPECT_EQ(SamplerUniform(SamplerKey(1234, 128, 248319)), 0x1.0f1de38142e8cp-1);
  EXPECT_EQ(SamplerKey(0x7fffffffffffffffull, uint64_t{1} << 32, 1), 0x5e2bfa67a31ca7b5ull);
}

TEST(SamplerUniform, ReachesOneAndNeverZero) {
  EXPECT_EQ(SamplerUniform(~uint64_t{0}), 1.0);
  EXPECT_GT(SamplerUniform(0), 0.0);
}

TEST(SampleToken, GreedyTakesTheLowestOfEqualIds) {
  const std::vector<float> logits = {1.0f, 3.0f, 3.0f, 2.0f};
  EXPECT_EQ(*SampleToken(logits, {}, 5), 1);
}

TEST(SampleToken, TopOneEqualsGreedyAtAnyTemperature) {
  const std::vector<float> logits = {1.0f, 3.0f, 3.0f, 2.0f};
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_EQ(*SampleToken(logits, {.temperature = 1.0, .top_k = 1, .seed = seed}, 9), 1);
  }
}

TEST(SampleToken, TheKthTieGoesToTheLowestIds) {
  // Ids 1, 2 and 3 tie for the two places: 1 and 2 take them, whatever the seed.
  const std::vector<float> logits = {0.0f, 2.0f, 2.0f, 2.0f};
  std::array<int, 4> seen{};
  for (uint64_t position = 0; position < 200; ++position) {
    ++seen[*SampleToken(logits, {.temperature = 1.0, .top_k = 2, .seed = 3}, position)];
  }
  EXPECT_EQ(seen[0] + seen[3], 0);
  EXPECT_GT(seen[1], 0);
  EXPECT_GT(seen[2], 0);
}

TEST(SampleToken, FollowsTheSoftmax) {
  // Chi-square over four tokens, 40,000 draws; 16.27 is its 0.1 % point for 3 degrees.
  const std::vector<float> logits = {0.0f, 0.6931472f, 1.0986123f, 1.3862944f};  // 1 : 2 : 3 : 4
  std::array<double, 4> seen{};
  constexpr int kDraws = 40000;
  for (int position = 0; position < kDraws; ++position) {
    ++seen[*SampleToken(logits, {.temperature = 1.0, .seed = 1234}, position)];
  }
  double chi_square = 0;
  for (int id = 0; id < 4; ++id) {
    const double expected = kDraws * (id + 1) / 10.0;
    chi_square += (seen[id] - expected) * (seen[id] - expected) / expected;
  }
  EXPECT_LT(chi_square, 16.27);
}

TEST(SampleToken, RefusesLogitsThatAreNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(SampleToken(std::vector<float>{0.0f, nan}, {}, 0).has_value());
  EXPECT_FALSE(SampleToken(std::vector<float>{0.0f, inf}, {}, 0).has_value());
  EXPECT_FALSE(SampleToken(std::vector<float>{-inf, -inf}, {}, 0).has_value());
  EXPECT_EQ(*SampleToken(std::vector<float>{-inf, 0.0f}, {}, 0), 1);
}

TEST(CheckSamplingParams, NamesTheFlag) {
  EXPECT_EQ(CheckSamplingParams({.top_k = -1}).error().where.flag, "--top-k");
  EXPECT_EQ(CheckSamplingParams({.top_p = 1.5}).error().where.flag, "--top-p");
  EXPECT_EQ(CheckSamplingParams({.min_p = -0.1}).error().where.flag, "--min-p");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(CheckSamplingParams({.temperature = nan}).error().where.flag, "--temperature");
}

}  // namespace
}  // namespace hallmark
