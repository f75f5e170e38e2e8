// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/lanes.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "conformance/harness/paths.h"

namespace hallmark {
namespace {

std::unique_ptr<Session> OpenGolden() {
  auto session =
      Session::Open(GoldenPath("models/scribe-11m-exl3"),
                    {.drafter = GoldenPath("models/scribe-11m-dflash2"), .kept_bytes = 0});
  EXPECT_TRUE(session.has_value()) << session.error().ToString();
  return std::move(*session);
}

TEST(LaneBench, MeasuresBothArmsOfEveryPromptAndCopies) {
  const auto session = OpenGolden();
  const auto result =
      RunLaneBench(*session, {.prompts = {{1, 2, 3}, {4, 5}}, .tokens = 24, .rounds = 1});
  ASSERT_TRUE(result.has_value()) << result.error().ToString();
  ASSERT_EQ((*result)["prompts"].size(), 2u);
  for (const Json& prompt : (*result)["prompts"]) {
    EXPECT_GT(prompt["serial_tokens_per_second"].get<double>(), 0);
    EXPECT_GT(prompt["drafted_over_serial"].get<double>(), 0);
  }
  EXPECT_GT((*result)["copies"]["copied"].get<int64_t>(), 10);
  EXPECT_NE(LaneBenchText(*result).find("copies"), std::string::npos);
}

}  // namespace
}  // namespace hallmark
