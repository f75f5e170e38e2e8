// SPDX-License-Identifier: Apache-2.0
// Clause draft-golden: its cases, as receipts run them, pass on the golden drafters and fail on a
// target that is another model.
#include <gtest/gtest.h>

#include <string>

#include "conformance/cases/draft_golden.h"
#include "conformance/harness/paths.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

std::vector<Row> RunCases(const std::string& target, const std::string& drafter) {
  const auto session = Session::Open(GoldenPath("models/" + target));
  EXPECT_TRUE(session.has_value()) << session.error().ToString();
  if (!session) return {};
  CaseRegistry registry;
  const Status added = AddDraftGoldenCases({session->get(), GoldenPath("")}, drafter, registry);
  EXPECT_TRUE(added.has_value()) << added.error().ToString();
  return registry.Run("", {});
}

TEST(DraftGoldenCases, PassOnTheGoldenDrafters) {
  size_t rows = 0;
  for (const GoldenDrafter& golden : GoldenDrafters()) {
    for (const Row& row : RunCases(std::string(golden.target), std::string(golden.drafter))) {
      EXPECT_EQ(row.outcome, Outcome::kPass) << row.case_name << ": " << row.detail;
      EXPECT_EQ(row.clause, "draft-golden");
      ++rows;
    }
  }
  // prism: 7 runs, thrice compared; scribe: 13 with recorded taps and one without.
  EXPECT_EQ(rows, 7u * 3u + 13u * 3u + 1u);
}

TEST(DraftGoldenCases, CannotBeShownOnAnotherTarget) {
  for (const Row& row : RunCases("scribe-11m-exl3", "prism-dflash")) {
    EXPECT_EQ(row.outcome, Outcome::kHarnessError) << row.case_name;
  }
}

TEST(DraftGoldenCases, AnUnknownDrafterHasNone) {
  CaseRegistry registry;
  const Status added = AddDraftGoldenCases({nullptr, GoldenPath("")}, "nobody", registry);
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace hallmark
