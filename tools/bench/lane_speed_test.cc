// SPDX-License-Identifier: Apache-2.0
// Numbers of this machine at this moment: labelled bench, not part of the gate.
#include "tools/bench/lanes.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include <cstdio>

#include "conformance/harness/paths.h"
#include "engine/text/tokenizer.h"

namespace hallmark {
namespace {

std::unique_ptr<Session> OpenGolden() {
  auto session =
      Session::Open(GoldenPath("models/scribe-11m-exl3"),
                    {.drafter = GoldenPath("models/scribe-11m-dflash2"), .kept_bytes = 0});
  EXPECT_TRUE(session.has_value()) << session.error().ToString();
  return std::move(*session);
}

std::vector<std::vector<int32_t>> GoldenPrompts(const Session& session) {
  const auto texts = ReadJsonFile(GoldenPath("models/scribe-11m-exl3/prompts.json"));
  EXPECT_TRUE(texts.has_value());
  std::vector<std::vector<int32_t>> prompts;
  for (const Json& text : *texts) {
    auto ids = session.tokenizer()->Encode(text.get<std::string>());
    EXPECT_TRUE(ids.has_value());
    prompts.push_back(std::move(*ids));
  }
  return prompts;
}

TEST(LaneSpeed, CopiesPayAndDraftingCostsLittleWhereItDoesNot) {
  const auto session = OpenGolden();
  const auto result = RunLaneBench(*session, {.prompts = GoldenPrompts(*session)});
  ASSERT_TRUE(result.has_value()) << result.error().ToString();
  std::printf("%s", LaneBenchText(*result).c_str());
  for (const Json& prompt : (*result)["prompts"]) {
    EXPECT_GE(prompt["drafted_over_serial"].get<double>(), 0.9);
  }
  EXPECT_GE((*result)["copies"]["copied_over_serial"].get<double>(), 1.5);
}

}  // namespace
}  // namespace hallmark
