// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/draft_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "conformance/harness/random_exl3.h"
#include "engine/backend/cpu/ref/draft.h"

namespace hallmark {
namespace {

class DraftOpsTest : public testing::Test {
 protected:
  ThreadPool pool_{2};
  CpuDraftOps ops_{pool_};
};

TEST_F(DraftOpsTest, TheNormsFactorIsPlain) {
  const std::vector<float> x = {3.0f, -4.0f, 0.0f, 0.0f};  // mean square 6.25
  const std::vector<float> weight = {1.0f, 0.5f, 7.0f, 0.0f};
  std::vector<float> out(4);
  ASSERT_TRUE(ops_.PlainRmsNorm({x.data(), 1, 4}, weight.data(), 0.0f, {out.data(), 1, 4}));
  EXPECT_EQ(out, (std::vector<float>{3.0f * 0.4f, -4.0f * 0.4f * 0.5f, 0.0f, 0.0f}));
}

TEST_F(DraftOpsTest, HeadsAreNormedAndTurnedByTheirOwnPosition) {
  const std::vector<float> x = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};  // 2 rows, 2 heads
  const std::vector<float> weight = {1.0f, 1.0f};
  const float inv_freq = 0.5f;
  std::vector<float> out(8);
  ASSERT_TRUE(ops_.DraftHeads({.heads = 2, .head_dim = 2, .eps = 0.0f}, weight.data(), &inv_freq, 4,
                              {x.data(), 2, 4}, {out.data(), 2, 4}));
  for (int row = 0; row < 2; ++row) {
    const double angle = (4 + row) * 0.5;
    for (int head = 0; head < 2; ++head) {
      EXPECT_FLOAT_EQ(out[row * 4 + head * 2], std::cos(angle) - std::sin(angle));
      EXPECT_FLOAT_EQ(out[row * 4 + head * 2 + 1], std::cos(angle) + std::sin(angle));
    }
  }
}

// Values are one-hot by key and all scores equal, so an output lists the keys a row has seen.
struct Seen {
  std::vector<std::vector<int>> rows;
};
Seen SeenKeys(CpuDraftOps& ops, int64_t length, int64_t block, int64_t window, bool causal) {
  constexpr int64_t kDim = 32;
  constexpr int64_t kPage = 4;
  const int64_t pages = (length + kPage - 1) / kPage;
  std::vector<float> context(static_cast<size_t>(pages * 2 * kPage * kDim), 0.0f);
  std::vector<const float*> addresses;
  for (int64_t p = 0; p < pages; ++p) addresses.push_back(context.data() + p * 2 * kPage * kDim);
  for (int64_t t = 0; t < length; ++t) {
    context[(t / kPage * 2 * kPage + kPage + t % kPage) * kDim + t] = 1.0f;
  }
  std::vector<float> q(block * kDim, 0.0f), k(block * kDim, 0.0f), v(block * kDim, 0.0f);
  for (int64_t j = 0; j < block; ++j) v[j * kDim + length + j] = 1.0f;
  std::vector<float> out(block * kDim);
  const DraftAttentionGeometry geometry{
      .heads = 1, .kv_heads = 1, .head_dim = kDim, .window = window, .causal = causal};
  EXPECT_TRUE(ops.DraftAttention(geometry, {0, length, kPage, addresses}, {q.data(), block, kDim},
                                 {k.data(), block, kDim}, {v.data(), block, kDim},
                                 {out.data(), block, kDim}));
  Seen seen;
  for (int64_t row = 0; row < block; ++row) {
    seen.rows.emplace_back();
    for (int t = 0; t < kDim; ++t) {
      if (out[row * kDim + t] != 0.0f) seen.rows.back().push_back(t);
    }
  }
  return seen;
}

std::vector<int> Range(int first, int last) {
  std::vector<int> all;
  for (int i = first; i <= last; ++i) all.push_back(i);
  return all;
}

TEST_F(DraftOpsTest, AWindowHoldsItsSizeMinusOneRowsOfContext) {
  const Seen seen = SeenKeys(ops_, 20, 4, 8, false);
  EXPECT_EQ(seen.rows[0], Range(13, 23));  // 20 - 13 < 8, and the whole block
  EXPECT_EQ(seen.rows[3], Range(16, 23));
}

TEST_F(DraftOpsTest, ACausalBlockRowSeesNoLaterOne) {
  const Seen seen = SeenKeys(ops_, 10, 4, 8, true);
  EXPECT_EQ(seen.rows[0], Range(3, 10));
  EXPECT_EQ(seen.rows[2], Range(5, 12));
}

TEST_F(DraftOpsTest, AWindowSmallerThanTheBlockBoundsTheBlockToo) {
  const Seen seen = SeenKeys(ops_, 10, 6, 3, false);
  EXPECT_EQ(seen.rows[0], Range(8, 12));
  EXPECT_EQ(seen.rows[4], Range(12, 15));
  const Seen causal = SeenKeys(ops_, 10, 6, 3, true);
  EXPECT_EQ(causal.rows[4], Range(12, 14));
}

TEST_F(DraftOpsTest, FullAttentionSeesTheWholeContextAndAnEmptyOneIsFine) {
  EXPECT_EQ(SeenKeys(ops_, 20, 4, 0, false).rows[1], Range(0, 23));
  EXPECT_EQ(SeenKeys(ops_, 20, 4, 0, true).rows[1], Range(0, 21));
  EXPECT_EQ(SeenKeys(ops_, 0, 4, 8, false).rows[1], Range(0, 3));
}

TEST_F(DraftOpsTest, TheShiftStartsAnewWithEveryBlock) {
  // Coefficients: 1 on the row itself, 10 on the one before; side 1 of two, groups of 2.
  const std::vector<float> base = {1.0f, 1.0f, 1.0f, 1.0f, 10.0f, 10.0f, 10.0f, 10.0f};
  std::vector<float> dyn(6 * 8, 0.0f);
  dyn[2 * 8 + 4 + 1] = 0.5f;  // row 2, side 1, tap 0, group 1
  std::vector<float> x(6 * 4);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i / 4 + 1);
  std::vector<float> out(6 * 4);
  ASSERT_TRUE(ops_.DynamicConv({.kernel = 2, .group = 2, .block_rows = 3, .side = 1}, base.data(),
                               {dyn.data(), 6, 8}, {x.data(), 6, 4}, {out.data(), 6, 4}));
  const std::vector<float> expected = {1, 1, 1, 1, 12, 12, 12, 12, 23, 23, 24.5f, 24.5f,
                                       4, 4, 4, 4, 45, 45, 45, 45, 56, 56, 56,    56};
  EXPECT_EQ(out, expected);
}

TEST_F(DraftOpsTest, LogitsAreMultipliedThenCapped) {
  std::vector<float> logits = {10.0f, -10.0f, 0.0f, 1000.0f};
  ASSERT_TRUE(ops_.ScaleLogits({.multiplier = 0.5f, .softcap = 0.0f}, {logits.data(), 1, 4}));
  EXPECT_EQ(logits, (std::vector<float>{5.0f, -5.0f, 0.0f, 500.0f}));
  ASSERT_TRUE(ops_.ScaleLogits({.multiplier = 1.0f, .softcap = 20.0f}, {logits.data(), 1, 4}));
  EXPECT_FLOAT_EQ(logits[0], 20.0f * std::tanh(0.25f));
  EXPECT_FLOAT_EQ(logits[1], -20.0f * std::tanh(0.25f));
  EXPECT_EQ(logits[2], 0.0f);
  EXPECT_EQ(logits[3], 20.0f);
}

TEST_F(DraftOpsTest, ALogitThatIsNotFiniteIsAnError) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits = {1.0f, 2.0f, 3.0f, bad, 1.0f, 2.0f};
    const Status capped =
        ops_.ScaleLogits({.multiplier = 1.0f, .softcap = 5.0f}, {logits.data(), 3, 2});
    ASSERT_FALSE(capped.has_value());
    EXPECT_EQ(capped.error().code, Code::kOutOfRange);
    EXPECT_NE(capped.error().message.find("row 1"), std::string::npos);
  }
  std::vector<float> logits = {1e38f};
  EXPECT_FALSE(ops_.ScaleLogits({.multiplier = 1e3f, .softcap = 0.0f}, {logits.data(), 1, 1}));
}

TEST_F(DraftOpsTest, TheLowestColumnWinsATie) {
  const std::vector<float> logits = {1.0f, 5.0f, 2.0f, 5.0f, 2.0f, 5.0f};
  std::vector<int32_t> columns(4);
  std::vector<float> values(4);
  ASSERT_TRUE(ops_.TopColumns({logits.data(), 1, 6}, 4, columns, values));
  EXPECT_EQ(columns, (std::vector<int32_t>{1, 3, 5, 2}));
  EXPECT_EQ(values, (std::vector<float>{5.0f, 5.0f, 5.0f, 2.0f}));
}

}  // namespace
}  // namespace hallmark
