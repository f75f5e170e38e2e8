// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/cpu_linear.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/backend/cpu/tier.h"

namespace hallmark {
namespace {

TEST(CpuLinearBench, MeasuresEveryTierCodebookAndWidthAndRatiosOfTheSameRun) {
  const Json result =
      RunCpuLinearBench({.rounds = 1, .inputs = 128, .outputs = 128, .widths = {3, 4}}).value();
  const size_t tiers = SupportedCpuTiers().size();
  EXPECT_EQ(result["rows"].size(), 3 * 2 * tiers);
  for (const Json& row : result["rows"]) {
    for (const char* measure : {"decode", "one_row", "eight_rows"}) {
      EXPECT_GT(row[measure].get<double>(), 0.0);
    }
  }
  ASSERT_EQ(result["ratios"].size(), 6u);
  for (const Json& row : result["ratios"]) {
    EXPECT_EQ(row["eight_rows_over_one"].size(), tiers);
    EXPECT_EQ(row.contains("avx2_over_scalar"), tiers > 1);
    EXPECT_EQ(row.contains("avx512_over_avx2"), tiers > 2);
    EXPECT_FALSE(row.contains("avx512_over_avx512"));
  }
  const std::string text = CpuLinearBenchText(result);
  EXPECT_NE(text.find("3inst"), std::string::npos);
  EXPECT_NE(text.find("scalar"), std::string::npos);
}

}  // namespace
}  // namespace hallmark
