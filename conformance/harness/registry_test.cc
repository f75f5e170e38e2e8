// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/registry.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hallmark {
namespace {

Row Passing() { return {.outcome = Outcome::kPass, .counts = {{"values", 3}}}; }

Outcome RunOne(const CaseFunction& function) {
  CaseRegistry registry;
  EXPECT_TRUE(registry.Add("clause", "case", function).has_value());
  return registry.Run("", {}).at(0).outcome;
}

TEST(CaseRegistry, RunsInOrderOfClauseThenCase) {
  CaseRegistry registry;
  for (const char* name : {"b", "c", "a"}) {
    ASSERT_TRUE(registry.Add("z", name, [] { return Result<Row>(Passing()); }).has_value());
  }
  ASSERT_TRUE(registry.Add("y", "d", [] { return Result<Row>(Passing()); }).has_value());
  EXPECT_EQ(registry.Names(), (std::vector<std::string>{"y/d", "z/a", "z/b", "z/c"}));
  std::vector<std::string> told;
  const auto rows = registry.Run("z/", [&](std::string_view name) { told.emplace_back(name); });
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].clause + "/" + rows[0].case_name, "z/a");
  EXPECT_EQ(told, (std::vector<std::string>{"z/a", "z/b", "z/c"}));
}

TEST(CaseRegistry, RefusesASecondCaseOfTheSameName) {
  CaseRegistry registry;
  ASSERT_TRUE(registry.Add("z", "a", [] { return Result<Row>(Passing()); }).has_value());
  EXPECT_FALSE(registry.Add("z", "a", [] { return Result<Row>(Passing()); }).has_value());
  EXPECT_FALSE(registry.Add("", "a", [] { return Result<Row>(Passing()); }).has_value());
}

TEST(CaseRegistry, AnErrorIsNeverAPass) {
  EXPECT_EQ(RunOne([]() -> Result<Row> { return Fail(Code::kUnsupported, "x"); }),
            Outcome::kNotSupported);
  EXPECT_EQ(RunOne([]() -> Result<Row> { return Fail(Code::kResource, "x"); }),
            Outcome::kResourceError);
  EXPECT_EQ(RunOne([]() -> Result<Row> { return Fail(Code::kMalformed, "x"); }),
            Outcome::kHarnessError);
}

TEST(CaseRegistry, AVacuousPassIsNoPass) {
  EXPECT_EQ(RunOne([] { return Result<Row>(Passing()); }), Outcome::kPass);
  EXPECT_EQ(RunOne([] { return Result<Row>(Row{.outcome = Outcome::kPass}); }),
            Outcome::kHarnessError);
  EXPECT_EQ(RunOne([] {
              Row row = Passing();
              row.counts["resumed rows"] = 0;
              return Result<Row>(row);
            }),
            Outcome::kHarnessError);
  EXPECT_EQ(RunOne([] {
              Row row = Passing();
              row.expected = "a";
              row.actual = "b";
              return Result<Row>(row);
            }),
            Outcome::kHarnessError);
}

TEST(Row, JsonHasSortedPlainMembers) {
  Row row = Passing();
  row.clause = "c";
  row.case_name = "n";
  EXPECT_EQ(RowToJson(row).dump(),
            R"({"actual":"","case":"n","clause":"c","counts":{"values":3},"expected":"",)"
            R"("outcome":"pass"})");
}

TEST(Outcome, WorstWinsAndNothingIsNoPass) {
  using enum Outcome;
  EXPECT_EQ(Worst(std::vector{kPass, kFail, kTimeout}), kFail);
  EXPECT_EQ(Worst(std::vector{kPass, kPass}), kPass);
  EXPECT_EQ(Worst({}), kHarnessError);
}

TEST(Outcome, OnlyPassExitsZeroAndUndecidedIsThree) {
  int zeros = 0;
  for (int i = 0; i <= static_cast<int>(Outcome::kCrash); ++i) {
    const Outcome outcome = static_cast<Outcome>(i);
    EXPECT_EQ(ParseOutcome(OutcomeName(outcome)), outcome);
    zeros += ExitCode(outcome) == 0;
  }
  EXPECT_EQ(zeros, 1);
  EXPECT_EQ(ExitCode(Outcome::kPass), 0);
  EXPECT_EQ(ExitCode(Outcome::kFail), 1);
  EXPECT_EQ(ExitCode(Outcome::kHarnessError), 3);
  EXPECT_FALSE(ParseOutcome("Pass").has_value());
}

}  // namespace
}  // namespace hallmark
