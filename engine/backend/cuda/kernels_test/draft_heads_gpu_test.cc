// SPDX-License-Identifier: Apache-2.0
// The drafter's heads, dynamic convolution and highest columns against their scalar definitions,
// bit for bit.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/backend/cpu/ref/draft.h"
#include "engine/backend/cpu/ref/pointwise.h"
#include "engine/backend/cuda/kernels_test/device_array.h"
#include "engine/backend/cuda/kernels_test/float_data.h"
#include "kernels/draft/dynamic_conv.h"
#include "kernels/draft/heads.h"
#include "kernels/draft/top_columns.h"

namespace hallmark {
namespace {

void ExpectHeads(DraftHeadShape shape, int64_t rows, int64_t position) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.heads << " x " << shape.head_dim);
  const int64_t cols = int64_t{1} * shape.heads * shape.head_dim;
  const std::vector<float> x = HardFloats(rows * cols, rows);
  const std::vector<float> weight = RandomFloats(shape.head_dim, 2);
  std::vector<float> inv_freq;
  for (int d = 0; d < shape.head_dim / 2; ++d) {
    inv_freq.push_back(static_cast<float>(std::pow(1e7, -2.0 * d / shape.head_dim)));
  }
  std::vector<float> expected(x.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int head = 0; head < shape.heads; ++head) {
      const int64_t at = row * cols + int64_t{1} * head * shape.head_dim;
      RefPlainRmsNorm(x.data() + at, weight.data(), shape.head_dim, shape.eps,
                      expected.data() + at);
      RefRope(inv_freq.data(), shape.head_dim, position + row, expected.data() + at);
    }
  }
  const DeviceArray<float> in(x), w(weight), freq(inv_freq), out(x.size());
  ASSERT_EQ(LaunchDraftHeads(shape, w.data(), freq.data(), position, in.data(), rows, out.data(),
                             nullptr),
            cudaSuccess);
  ASSERT_EQ(BitDifference(expected, out.Download()), "");
  ASSERT_EQ(
      LaunchDraftHeads(shape, w.data(), freq.data(), position, in.data(), rows, in.data(), nullptr),
      cudaSuccess);
  ASSERT_EQ(BitDifference(expected, in.Download()), "");
}

TEST(DraftHeadsGpu, HasTheBitsOfTheDefinition) {
  for (const int64_t rows : {1, 2, 3, 7, 8, 9, 16, 17, 31, 64, 127, 128}) {
    ExpectHeads({.heads = 32, .head_dim = 128, .eps = 1e-6f}, rows, 1000);
  }
  for (const int64_t position : {0, 1, 255, 262143}) {
    ExpectHeads({.heads = 3, .head_dim = 128, .eps = 1e-6f}, 5, position);
  }
  for (const int dim : {2, 30, 64, 130, 256}) {
    ExpectHeads({.heads = 3, .head_dim = dim, .eps = 1e-5f}, 3, 77);
  }
  EXPECT_EQ(LaunchDraftHeads({.heads = 1, .head_dim = 3}, nullptr, nullptr, 0, nullptr, 1, nullptr,
                             nullptr),
            cudaErrorInvalidValue);
}

void ExpectDynamicConv(DynamicConvShape shape, int64_t rows, int64_t channels) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << channels << ", blocks of "
                                  << shape.block_rows);
  const int64_t groups = channels / shape.group;
  const int64_t dyn_cols = 2 * shape.kernel * groups;
  const std::vector<float> x = HardFloats(rows * channels, rows, 1e20f);
  const std::vector<float> base = HardFloats(shape.kernel * channels, 2, 10.0f);
  const std::vector<float> dyn = HardFloats(rows * dyn_cols, 3, 10.0f);
  std::vector<float> expected(x.size());
  for (int64_t row = 0; row < rows; ++row) {
    RefDynamicConv(x.data() + row * channels, channels, base.data(),
                   dyn.data() + row * dyn_cols + shape.side * dyn_cols / 2, shape.kernel,
                   shape.group, row % shape.block_rows, expected.data() + row * channels);
  }
  const DeviceArray<float> in(x), b(base), d(dyn), out(x.size());
  ASSERT_EQ(
      LaunchDynamicConv(shape, b.data(), d.data(), in.data(), rows, channels, out.data(), nullptr),
      cudaSuccess);
  ASSERT_EQ(BitDifference(expected, out.Download()), "");
}

TEST(DynamicConvGpu, HasTheBitsOfTheDefinition) {
  for (const int side : {0, 1}) {
    for (const int64_t rows : {1, 8, 16, 24, 128}) {
      ExpectDynamicConv({.kernel = 4, .group = 64, .block_rows = 8, .side = side}, rows, 5120);
    }
    ExpectDynamicConv({.kernel = 3, .group = 1, .block_rows = 5, .side = side}, 10, 37);
    ExpectDynamicConv({.kernel = 7, .group = 10, .block_rows = 4, .side = side}, 12, 300);
    ExpectDynamicConv({.kernel = 1, .group = 300, .block_rows = 1, .side = side}, 3, 300);
  }
  EXPECT_EQ(LaunchDynamicConv({.kernel = 1, .group = 7, .block_rows = 1}, nullptr, nullptr, nullptr,
                              1, 100, nullptr, nullptr),
            cudaErrorInvalidValue);
}

void ExpectTop(const std::vector<float>& logits, int64_t rows, int64_t count) {
  const int64_t cols = static_cast<int64_t>(logits.size()) / rows;
  SCOPED_TRACE(testing::Message() << count << " of " << rows << " rows of " << cols);
  std::vector<int32_t> columns(static_cast<size_t>(rows * count));
  std::vector<float> values(columns.size());
  for (int64_t row = 0; row < rows; ++row) {
    RefTopColumns(logits.data() + row * cols, cols, count, columns.data() + row * count,
                  values.data() + row * count);
  }
  const DeviceArray<float> in(logits), found_values(values.size());
  const DeviceArray<int32_t> found_columns(columns.size());
  const DeviceArray<uint64_t> scratch(static_cast<size_t>(TopColumnsScratch(rows, cols, count)));
  ASSERT_EQ(LaunchTopColumns(in.data(), rows, cols, count, scratch.data(), found_columns.data(),
                             found_values.data(), nullptr),
            cudaSuccess);
  ASSERT_EQ(BitDifference(columns, found_columns.Download()), "");
  ASSERT_EQ(BitDifference(values, found_values.Download()), "");
  scratch.Download();  // checks the bands
}

TEST(TopColumnsGpu, FindsThemBestFirst) {
  for (const int64_t cols : {64, 65, 100, 2047, 2048, 2049, 4096, 70000}) {
    for (const int64_t count : {1, 2, 7, 63, 64}) {
      ExpectTop(HardFloats(3 * cols, cols), 3, count);
    }
  }
  ExpectTop(HardFloats(1, 1), 1, 1);
  ExpectTop(HardFloats(2 * 5, 1), 2, 5);
  for (const int64_t count : {1, 8, 64}) ExpectTop(HardFloats(17 * 248320, 9), 17, count);
}

TEST(TopColumnsGpu, TheLowestColumnWinsATie) {
  SplitMix64 random(3);
  std::vector<float> logits(2 * 50000);
  for (float& value : logits) value = static_cast<float>(random.Below(3)) - 1.0f;
  for (const int64_t count : {1, 5, 64}) ExpectTop(logits, 2, count);
  // -0 and 0 are equal, and each comes back as it was.
  for (float& value : logits) value = random.Below(2) == 0 ? -0.0f : 0.0f;
  for (const int64_t count : {1, 5, 64}) ExpectTop(logits, 2, count);
  for (float& value : logits) value = -1.0f - static_cast<float>(random.Below(2));
  for (const int64_t count : {1, 64}) ExpectTop(logits, 2, count);
}

TEST(TopColumnsGpu, RefusesCountsItCannotFind) {
  EXPECT_EQ(LaunchTopColumns(nullptr, 1, 100, 65, nullptr, nullptr, nullptr, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(LaunchTopColumns(nullptr, 1, 3, 4, nullptr, nullptr, nullptr, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(LaunchTopColumns(nullptr, 1, 3, 0, nullptr, nullptr, nullptr, nullptr),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace hallmark
