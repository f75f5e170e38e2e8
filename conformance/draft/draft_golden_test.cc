// SPDX-License-Identifier: Apache-2.0
// Clause draft-golden: a block's rows and proposals against the published drafter module in fp32,
// for DFlash2 (scribe) and DFlash (prism), with recorded taps and with the engine's own.
#include "conformance/draft/draft_golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "conformance/draft/loaded_drafter.h"
#include "conformance/harness/paths.h"
#include "conformance/harness/tolerances.h"

namespace hallmark {
namespace {

struct Totals {
  size_t runs = 0;
  size_t rows = 0;
  size_t compared = 0;
  size_t differ = 0;
  double worst = 0;
};

// With recorded taps rows and proposals are held; with the engine's own, proposals alone.
Totals RunGolden(const LoadedDrafter& loaded, const std::vector<DraftGoldenRun>& runs,
                 TapSource source) {
  const bool recorded = source == TapSource::kGolden;
  Totals totals;
  for (const DraftGoldenRun& run : runs) {
    if (recorded && run.taps.empty()) continue;
    const auto comparison =
        CompareDraft(*loaded.drafter, run, source, Tolerance("prism-draft-margin"));
    EXPECT_TRUE(comparison.has_value()) << comparison.error().ToString();
    if (!comparison) continue;
    std::printf("%s: %s\n", run.name.c_str(), comparison->ToString().c_str());
    EXPECT_EQ(comparison->non_finite, 0u) << run.name;
    if (recorded) {
      EXPECT_LE(comparison->worst_relative, Tolerance("draft-rows-relative")) << run.name;
      EXPECT_EQ(comparison->differ, 0u) << run.name;
    } else {
      EXPECT_LE(comparison->differ, Tolerance("draft-own-taps-differ")) << run.name;
    }
    ++totals.runs;
    totals.rows += comparison->rows;
    totals.compared += comparison->compared;
    totals.differ += comparison->differ;
    totals.worst = std::max(totals.worst, comparison->worst_relative);
  }
  std::printf("%zu runs, %zu rows, worst relative %.3e, %zu of %zu proposals differ\n", totals.runs,
              totals.rows, totals.worst, totals.differ, totals.compared);
  return totals;
}

class ScribeDraftGolden : public testing::Test {
 protected:
  void SetUp() override {
    const std::string directory = GoldenPath("models/scribe-11m-dflash2");
    auto loaded = LoadDrafter(GoldenPath("models/scribe-11m-exl3"), directory);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().ToString();
    loaded_ = std::move(*loaded);
    auto runs = ReadDraftGolden(directory);
    ASSERT_TRUE(runs.has_value()) << runs.error().ToString();
    runs_ = std::move(*runs);
  }

  LoadedDrafter loaded_;
  std::vector<DraftGoldenRun> runs_;
};

TEST_F(ScribeDraftGolden, RecordedTaps) {
  const Totals totals = RunGolden(loaded_, runs_, TapSource::kGolden);
  EXPECT_EQ(totals.runs, 13u);  // two prompts, and the lengths up to 300
  EXPECT_EQ(totals.compared, 13u * 7u);
}

TEST_F(ScribeDraftGolden, OwnTaps) {
  const Totals totals = RunGolden(loaded_, runs_, TapSource::kEngine);
  EXPECT_EQ(totals.runs, 14u);
  EXPECT_EQ(totals.compared, 14u * 7u);
}

// Every strip of the head but one that no published proposal lies in: proposals through the slices
// are the published ones.
TEST_F(ScribeDraftGolden, SlicedHeadGivesThePublishedProposals) {
  constexpr int64_t kStrip = 128;
  constexpr int64_t kVocab = 4096;
  std::vector<bool> used(kVocab / kStrip);
  for (const DraftGoldenRun& run : runs_) {
    for (const int32_t id : run.draft) used[static_cast<size_t>(id / kStrip)] = true;
  }
  const auto unused = std::find(used.begin() + 1, used.end() - 1, false);
  ASSERT_NE(unused, used.end() - 1);
  const int64_t gap = (unused - used.begin()) * kStrip;
  auto sliced =
      LoadDrafter(GoldenPath("models/scribe-11m-exl3"), GoldenPath("models/scribe-11m-dflash2"),
                  {.vocabulary = {{0, gap}, {gap + kStrip, kVocab}}});
  ASSERT_TRUE(sliced.has_value()) << sliced.error().ToString();
  ASSERT_EQ(sliced->drafter->vocabulary().size(), kVocab - kStrip);
  const Totals totals = RunGolden(*sliced, runs_, TapSource::kGolden);
  EXPECT_EQ(totals.compared, 13u * 7u);
}

class PrismDraftGolden : public testing::Test {
 protected:
  void SetUp() override {
    const std::string directory = GoldenPath("models/prism-dflash");
    const std::string target = GoldenPath("models/prism-exl3");
    auto loaded = LoadDrafter(target, directory);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().ToString();
    loaded_ = std::move(*loaded);
    const auto ids = ReadGoldenIds(target);
    ASSERT_TRUE(ids.has_value()) << ids.error().ToString();
    auto runs = ReadDraftGolden(directory, *ids);
    ASSERT_TRUE(runs.has_value()) << runs.error().ToString();
    runs_ = std::move(*runs);
  }

  LoadedDrafter loaded_;
  std::vector<DraftGoldenRun> runs_;
};

TEST_F(PrismDraftGolden, RecordedTaps) {
  const Totals totals = RunGolden(loaded_, runs_, TapSource::kGolden);
  EXPECT_EQ(totals.runs, 7u);
  EXPECT_EQ(totals.rows, 7u * 15u);
  EXPECT_GT(totals.compared, 7u * 10u);
}

TEST_F(PrismDraftGolden, OwnTaps) {
  const Totals totals = RunGolden(loaded_, runs_, TapSource::kEngine);
  EXPECT_EQ(totals.runs, 7u);
  EXPECT_GT(totals.compared, 7u * 10u);
}

}  // namespace
}  // namespace hallmark
