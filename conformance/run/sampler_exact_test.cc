// SPDX-License-Identifier: Apache-2.0
// Clause: sampler-exact
#include "conformance/cases/sampler_exact.h"

#include <gtest/gtest.h>

#include <array>

#include "conformance/harness/paths.h"

namespace hallmark {
namespace {

std::vector<SamplerDraw> PublishedDraws() {
  auto draws = ReadSamplerDraws(GoldenPath("run/sampler_draws.json"));
  EXPECT_TRUE(draws.has_value()) << draws.error().ToString();
  return draws.has_value() ? *std::move(draws) : std::vector<SamplerDraw>{};
}

TEST(SamplerExact, DrawsEveryPublishedToken) {
  const std::vector<SamplerDraw> draws = PublishedDraws();
  ASSERT_EQ(draws.size(), 400u);
  for (size_t i = 0; i < draws.size(); ++i) {
    const auto token = SampleToken(draws[i].logits, draws[i].params, draws[i].position);
    ASSERT_TRUE(token.has_value()) << "draw " << i << ": " << token.error().ToString();
    EXPECT_EQ(*token, draws[i].token) << "draw " << i;
  }
}

TEST(SamplerExact, ThePublishedDrawsCoverTiesAndEverySetting) {
  std::array<int, 16> seen{};
  int ties = 0;
  for (const SamplerDraw& draw : PublishedDraws()) {
    const SamplingParams& p = draw.params;
    ties += draw.HasTies() ? 1 : 0;
    ++seen[(p.temperature > 0) + 2 * (p.top_k > 0) + 4 * (p.top_p < 1) + 8 * (p.min_p > 0)];
  }
  EXPECT_EQ(ties, 143);
  for (const int setting : {0, 1, 3, 5, 9, 15}) EXPECT_GT(seen[setting], 0) << setting;
}

TEST(SamplerExact, TheReceiptRowsCountWhatTheyCompared) {
  CaseRegistry registry;
  ASSERT_TRUE(AddSamplerExactCases({.golden = GoldenPath("")}, registry).has_value());
  const std::vector<Row> rows = registry.Run("", {});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].outcome, Outcome::kPass) << rows[0].detail;
  EXPECT_EQ(rows[0].counts.at("draws"), 400u);
  EXPECT_EQ(rows[1].outcome, Outcome::kPass) << rows[1].detail;
  EXPECT_EQ(rows[1].counts.at("draws"), 143u);
}

TEST(SamplerExact, AMissingVectorFileIsNoPass) {
  CaseRegistry registry;
  ASSERT_TRUE(AddSamplerExactCases({.golden = testing::TempDir() + "/no such folder"}, registry)
                  .has_value());
  for (const Row& row : registry.Run("", {})) EXPECT_EQ(row.outcome, Outcome::kHarnessError);
}

}  // namespace
}  // namespace hallmark
