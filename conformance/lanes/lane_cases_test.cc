// SPDX-License-Identifier: Apache-2.0
// The cases of level L3 on the golden models and their drafters, with both cache types, pages
// poisoned; their counts are printed.
#include <gtest/gtest.h>

#include <algorithm>

#include <cstdio>
#include <string>
#include <tuple>

#include "conformance/cases/levels.h"
#include "conformance/harness/paths.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

struct LaneSubject {
  std::string name;
  std::string model;
  std::string drafter;
  KvType kv;
};
const LaneSubject kSubjects[] = {
    {"scribe_bf16", "models/scribe-11m-exl3", "models/scribe-11m-dflash2", KvType::kBf16},
    {"scribe_fp8", "models/scribe-11m-exl3", "models/scribe-11m-dflash2", KvType::kFp8E4m3},
    {"prism_bf16", "models/prism-exl3", "models/prism-dflash", KvType::kBf16},
    {"prism_fp8", "models/prism-exl3", "models/prism-dflash", KvType::kFp8E4m3},
};
constexpr const char* kClauses[] = {"commit-equals-serial", "concurrent-equals-solo",
                                    "copy-gate-neutral",    "drafted-equals-undrafted",
                                    "failure-isolation",    "resumed-equals-fresh",
                                    "slice-equals-parent",  "verify-equals-serial"};

class LaneCases : public testing::TestWithParam<std::tuple<LaneSubject, const char*>> {};

TEST_P(LaneCases, Pass) {
  const auto& [subject, clause] = GetParam();
  auto session = Session::Open(
      GoldenPath(subject.model),
      {.kv = subject.kv, .drafter = GoldenPath(subject.drafter), .poison_pages = true});
  ASSERT_TRUE(session.has_value()) << session.error().ToString();
  CaseRegistry registry;
  ASSERT_TRUE(
      AddLevelCases(Level::kL3, {.session = session->get(), .golden = GoldenPath("")}, registry)
          .has_value());
  const std::vector<Row> rows = registry.Run(std::string(clause) + "/", {});
  ASSERT_FALSE(rows.empty());
  for (const Row& row : rows) {
    const std::string name = row.clause + "/" + row.case_name;
    EXPECT_EQ(row.outcome, Outcome::kPass) << name << ": " << row.detail;
    std::string counts;
    for (const auto& [what, count] : row.counts) {
      counts += " " + what + "=" + std::to_string(count);
    }
    std::printf("%s:%s\n", name.c_str(), counts.c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, LaneCases,
                         testing::Combine(testing::ValuesIn(kSubjects),
                                          testing::ValuesIn(kClauses)),
                         [](const auto& info) {
                           std::string name =
                               std::get<0>(info.param).name + "_" + std::get<1>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hallmark
