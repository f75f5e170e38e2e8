// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/must_pass.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/harness/paths.h"
#include "receipts/emit/embedded.h"
#include "receipts/emit/must_pass_text.h"

namespace hallmark {
namespace {

// Rows that pass for every case of the levels up to `level`, and of a backend besides.
std::vector<Row> AllPassing(Level level, const std::string& backend = "cpu") {
  std::vector<Row> rows;
  for (const Level each : kLevels) {
    if (each > level) break;
    const MustPassList list = BuildMustPass(each);
    std::vector<std::string> names = list.cases;
    if (const auto more = list.backends.find(backend); more != list.backends.end()) {
      names.insert(names.end(), more->second.begin(), more->second.end());
    }
    for (const std::string& name : names) {
      const size_t slash = name.find('/');
      rows.push_back({.clause = name.substr(0, slash),
                      .case_name = name.substr(slash + 1),
                      .outcome = Outcome::kPass,
                      .counts = {{"values", 1}}});
    }
  }
  return rows;
}

TEST(MustPass, TheCommittedListsAreTheCasesTheCodeHas) {
  for (const Level level : kLevels) {
    auto text = MustPassTextOf(level, GoldenPath(""));
    ASSERT_TRUE(text.has_value()) << text.error().ToString();
    EXPECT_EQ(MustPassText(static_cast<int>(level)), *text)
        << "write them anew: list_cases receipts/must_pass";
  }
}

TEST(MustPass, NamesEveryClauseThatReceiptsSpeakOf) {
  std::set<std::string> clauses;
  size_t cases = 0;
  for (const Level level : kLevels) {
    const MustPassList list = BuildMustPass(level);
    for (const std::string& name : list.cases) clauses.insert(name.substr(0, name.find('/')));
    for (const auto& [backend, names] : list.backends) {
      for (const std::string& name : names) clauses.insert(name.substr(0, name.find('/')));
    }
    for (const GoldenModel& model : list.golden_models) {
      for (const std::string& name : model.cases) clauses.insert(name.substr(0, name.find('/')));
    }
    cases += list.cases.size();
  }
  EXPECT_EQ(clauses, (std::set<std::string>{"chunked-equals-whole",   "commit-equals-serial",
                                            "concurrent-equals-solo", "copy-gate-neutral",
                                            "counters-zero",          "decode-exact",
                                            "draft-golden",           "drafted-equals-undrafted",
                                            "failure-isolation",      "format-accept",
                                            "format-reject",          "graph-equals-eager",
                                            "mapped-equals-device",   "model-golden",
                                            "resumed-equals-fresh",   "row-invariance",
                                            "sampler-exact",          "scratch-clean",
                                            "slice-equals-parent",    "text-exact",
                                            "verify-equals-serial"}));
  EXPECT_GT(cases, 150u);
}

TEST(Judge, PassesOnlyWhenEveryCaseOfEveryLevelIsThere) {
  const std::vector<Row> rows = AllPassing(Level::kL3);
  EXPECT_EQ(Judge(Level::kL3, "cpu", {}, rows).outcome, Outcome::kPass);
  for (const Level level : kLevels) {
    const std::string gone = BuildMustPass(level).cases.back();
    std::vector<Row> fewer;
    for (const Row& row : rows) {
      if (row.clause + "/" + row.case_name != gone) fewer.push_back(row);
    }
    const Verdict verdict = Judge(Level::kL3, "cpu", {}, fewer);
    EXPECT_EQ(verdict.outcome, Outcome::kFail);
    EXPECT_EQ(verdict.missing, std::vector<std::string>{gone});
    EXPECT_EQ(ExitCode(verdict.outcome), 1);
  }
}

TEST(Judge, TheWorstRowDecidesAndNoRowsDecideNothingGood) {
  std::vector<Row> rows = AllPassing(Level::kL1);
  rows[3].outcome = Outcome::kResourceError;
  EXPECT_EQ(ExitCode(Judge(Level::kL1, "cpu", {}, rows).outcome), 3);
  rows[4].outcome = Outcome::kFail;
  EXPECT_EQ(ExitCode(Judge(Level::kL1, "cpu", {}, rows).outcome), 1);
  EXPECT_NE(Judge(Level::kL0, "cpu", {}, {}).outcome, Outcome::kPass);
  rows = AllPassing(Level::kL0);
  rows[0].outcome = Outcome::kWaived;
  EXPECT_NE(Judge(Level::kL0, "cpu", {}, rows).outcome, Outcome::kPass);
}

// What a GPU must show besides is asked of its receipts alone, row by row.
TEST(Judge, ABackendNeedsItsOwnCasesToo) {
  const std::vector<Row> cpu = AllPassing(Level::kL3);
  const std::vector<Row> cuda = AllPassing(Level::kL3, "cuda");
  EXPECT_EQ(Judge(Level::kL3, "cuda", {}, cuda).outcome, Outcome::kPass);
  const Verdict verdict = Judge(Level::kL3, "cuda", {}, cpu);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_EQ(verdict.missing.size(), cuda.size() - cpu.size());
  EXPECT_EQ(verdict.missing,
            (std::vector<std::string>{"counters-zero/split-linears", "mapped-equals-device/rows",
                                      "graph-equals-eager/rounds"}));
}

TEST(Judge, AGoldenModelNeedsItsReferenceRows) {
  const MustPassList list = BuildMustPass(Level::kL2);
  ASSERT_EQ(list.golden_models.size(), 2u);
  const GoldenModel& model = list.golden_models[0];
  const Verdict verdict = Judge(Level::kL2, "cpu", model.files, AllPassing(Level::kL2));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_EQ(verdict.missing, model.cases);
  // Known by digest: one other byte in one file, and it is a checkpoint like any other.
  std::map<std::string, std::string> other = model.files;
  other.begin()->second[0] = other.begin()->second[0] == '0' ? '1' : '0';
  EXPECT_EQ(Judge(Level::kL2, "cpu", other, AllPassing(Level::kL2)).outcome, Outcome::kPass);
}

TEST(ParseMustPass, RefusesWhatIsNoList) {
  for (const char* text :
       {"[]", "{}", R"({"level":"L9","cases":["a/b"]})", R"({"level":"L0","cases":[]})",
        R"({"level":"L0","cases":["no slash"]})", R"({"level":"L0","cases":[1]})",
        R"({"level":"L0","cases":["a/b"],"backends":["a/b"]})",
        R"({"level":"L0","cases":["a/b"],"backends":{"cuda":[]}})",
        R"({"level":"L0","cases":["a/b"],"golden_models":[{}]})"}) {
    const auto list = ParseMustPass(text, "x");
    ASSERT_FALSE(list.has_value()) << text;
    EXPECT_EQ(list.error().code, Code::kMalformed) << text;
    EXPECT_EQ(list.error().where.file, "x");
  }
}

}  // namespace
}  // namespace hallmark
