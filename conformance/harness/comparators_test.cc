// SPDX-License-Identifier: Apache-2.0
// Each comparator is shown green once and red for every fault it exists to see.
#include "conformance/harness/comparators.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace hallmark {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

BitComparison Bits(const std::vector<float>& expected, const std::vector<float>& actual) {
  return CompareBits(std::span<const float>(expected), std::span<const float>(actual));
}

TEST(CompareBits, EqualSpansPassAndSayHowMany) {
  const BitComparison result = Bits({1, 2, kNan}, {1, 2, kNan});
  EXPECT_TRUE(result.Passed());
  EXPECT_EQ(result.compared, 3u);
}

TEST(CompareBits, AnEmptyComparisonFails) { EXPECT_FALSE(Bits({}, {}).Passed()); }

TEST(CompareBits, SignedZeroAndOneUlpDiffer) {
  EXPECT_FALSE(Bits({0.0f}, {-0.0f}).Passed());
  const BitComparison result = Bits({1, 1}, {1, 1.0000001f});
  EXPECT_EQ(result.mismatches, 1u);
  EXPECT_EQ(result.first, 1u);
}

TEST(CompareBits, AShorterOrLongerResultFails) {
  EXPECT_EQ(Bits({1, 2, 3}, {1}).mismatches, 2u);
  EXPECT_EQ(Bits({1}, {1, 2}).first, 1u);
  EXPECT_FALSE(Bits({}, {1}).Passed());
}

TEST(MeasureDrift, EqualRowsHaveNone) {
  const std::vector<float> rows = {1, 2, 3, 4, 0, -1};
  const Drift drift = MeasureDrift(rows, rows, 3);
  EXPECT_EQ(drift.rows, 2u);
  EXPECT_EQ(drift.worst_rms, 0);
  EXPECT_EQ(drift.mean_kl, 0);
  EXPECT_TRUE(drift.Within(1e-9, 1e-9));
}

TEST(MeasureDrift, FindsTheWorstRow) {
  const std::vector<float> expected = {1, -1, 1, -1, 1, -1};
  const std::vector<float> actual = {1, -1, 1.5f, -1.5f, 1.1f, -1.1f};
  const Drift drift = MeasureDrift(expected, actual, 2);
  EXPECT_EQ(drift.worst_row, 1u);
  EXPECT_EQ(drift.worst_rms, 0.5);
  EXPECT_GT(drift.mean_kl, 0);
  EXPECT_FALSE(drift.Within(0.4, 1));
  EXPECT_FALSE(drift.Within(1, drift.mean_kl / 2));
}

TEST(MeasureDrift, NonFiniteValuesAndConstantRowsNeverPass) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    const Drift drift = MeasureDrift(std::vector<float>{1, 2}, std::vector<float>{1, bad}, 2);
    EXPECT_EQ(drift.non_finite, 1u);
    EXPECT_FALSE(drift.Within(1e9, 1e9));
  }
  EXPECT_FALSE(
      MeasureDrift(std::vector<float>{1, 1}, std::vector<float>{1, 2}, 2).Within(1e9, 1e9));
  EXPECT_FALSE(MeasureDrift({}, {}, 2).Within(1, 1));
}

TEST(MeasureDrift, ANonFiniteReferenceNeverPasses) {
  EXPECT_FALSE(
      MeasureDrift(std::vector<float>{1, kNan}, std::vector<float>{1, 2}, 2).Within(1e9, 1e9));
}

TEST(Argmax, LowestIndexWinsATieAndNanNeverWins) {
  EXPECT_EQ(Argmax(std::vector<float>{1, 3, 3, 2}), 1u);
  EXPECT_EQ(Argmax(std::vector<float>{kNan, -5, kNan}), 1u);
}

TEST(CompareArgmax, SeesAWrongIdOnlyAboveTheMargin) {
  const std::vector<int32_t> ids = {0, 1};
  const std::vector<float> margins = {0.05f, 1};
  const std::vector<float> wrong_close = {0, 1, 0, 1};
  const ArgmaxAgreement fine = CompareArgmax(ids, margins, wrong_close, 2, 0.1);
  EXPECT_TRUE(fine.Passed());
  EXPECT_EQ(fine.close, 1u);
  const std::vector<float> wrong_clear = {1, 0, 1, 0};
  const ArgmaxAgreement red = CompareArgmax(ids, margins, wrong_clear, 2, 0.1);
  EXPECT_EQ(red.differ, 1u);
  EXPECT_EQ(red.first, 1u);
  EXPECT_FALSE(CompareArgmax(ids, margins, wrong_clear, 2, 5).Passed());  // nothing compared
}

TEST(MeasureLiveness, AStuckOrSilentRunFails) {
  constexpr size_t kColumns = 32;
  std::vector<float> varied(20 * kColumns, 0);
  std::vector<float> stuck(20 * kColumns, 0);
  std::vector<float> certain(20 * kColumns, 0);
  for (size_t row = 0; row < 20; ++row) {
    varied[row * kColumns + row] = 1;
    stuck[row * kColumns] = 1;
    certain[row * kColumns + row] = 100;
  }
  EXPECT_TRUE(MeasureLiveness(varied, kColumns).Passed());
  EXPECT_FALSE(MeasureLiveness(stuck, kColumns).Passed());
  EXPECT_FALSE(MeasureLiveness(certain, kColumns).Passed());
  varied[3] = kNan;
  EXPECT_FALSE(MeasureLiveness(varied, kColumns).Passed());
  EXPECT_FALSE(MeasureLiveness({}, kColumns).Passed());
}

}  // namespace
}  // namespace hallmark
