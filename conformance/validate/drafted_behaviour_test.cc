// SPDX-License-Identifier: Apache-2.0
// The behaviour step with a drafter and its own choice of cases, which takes half a minute.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "conformance/harness/paths.h"
#include "conformance/validate/behaviour.h"

namespace hallmark {
namespace {

TEST(DraftedBehaviour, TheModelsOwnDrafterPassesEveryCaseOfTheChoice) {
  const auto report =
      ValidateBehaviour({.folder = GoldenPath("models/scribe-11m-exl3"),
                         .session = {.drafter = GoldenPath("models/scribe-11m-dflash2")}},
                        {});
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  for (const Finding& finding : report->findings) {
    ADD_FAILURE() << finding.check << ": " << finding.error.ToString();
  }
  EXPECT_GT(report->facts->at("drafts").at("accepted"), 10);
  size_t drafted = 0;
  size_t resumed = 0;
  for (const auto& [name, outcome] : report->facts->at("cases").items()) {
    EXPECT_EQ(outcome, "pass") << name;
    drafted += name.starts_with("drafted-equals-undrafted/");
    resumed += name.starts_with("resumed-equals-fresh/");
  }
  EXPECT_GE(drafted, 10u);
  EXPECT_GE(resumed, 10u);
}

}  // namespace
}  // namespace hallmark
