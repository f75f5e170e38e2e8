// SPDX-License-Identifier: Apache-2.0
// Every case a receipt holds, on the checkpoint and drafter under test: HALLMARK_MODEL and
// HALLMARK_DRAFTER, else golden scribe and its drafter. A checkpoint named without a drafter is run
// through every case of lanes that needs none.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/cases/levels.h"
#include "conformance/harness/paths.h"
#include "conformance/harness/registry.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

class CheckpointUnderTest : public testing::TestWithParam<Level> {};

TEST_P(CheckpointUnderTest, PassesEveryCaseOfTheLevel) {
  SessionOptions options{.poison_pages = true};
  if (GetParam() == Level::kL3) options.drafter = DrafterUnderTest();
  auto session = Session::Open(ModelUnderTest(), options);
  ASSERT_TRUE(session.has_value()) << session.error().ToString();
  CaseRegistry registry;
  const CaseSubject subject{.session = session->get(), .golden = GoldenPath("")};
  ASSERT_TRUE(AddLevelCases(GetParam(), subject, registry).has_value());
  const std::vector<Row> rows = registry.Run("", {});
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.size(), registry.Names().size());
  for (const Row& row : rows) {
    EXPECT_EQ(row.outcome, Outcome::kPass) << row.clause << "/" << row.case_name << ": "
                                           << OutcomeName(row.outcome) << ": " << row.detail;
  }
}

INSTANTIATE_TEST_SUITE_P(Vendor, CheckpointUnderTest, testing::ValuesIn(kLevels),
                         [](const auto& info) { return std::string(LevelName(info.param)); });

}  // namespace
}  // namespace hallmark
