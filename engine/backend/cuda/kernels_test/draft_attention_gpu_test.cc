// SPDX-License-Identifier: Apache-2.0
// The drafter's attention against the CPU backend's, bit for bit: contexts in pages, windows, both
// kinds of block.
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "engine/backend/cpu/draft_ops.h"
#include "engine/backend/cuda/kernels_test/device_array.h"
#include "engine/backend/cuda/kernels_test/float_data.h"
#include "kernels/draft/attention.h"

namespace hallmark {
namespace {

struct AttentionCase {
  DraftAttentionShape shape;
  int64_t first_position = 0;
  int64_t end = 0;
  int64_t page_rows = 16;
  int64_t rows = 1;
};

void ExpectAttention(const AttentionCase& test) {
  const DraftAttentionShape& shape = test.shape;
  SCOPED_TRACE(testing::Message() << test.rows << " rows at " << test.end << ", from "
                                  << test.first_position << ", window " << shape.window
                                  << ", causal " << shape.causal << ", head_dim "
                                  << shape.head_dim);
  const int64_t width = int64_t{1} * shape.kv_heads * shape.head_dim;
  const int64_t cols = int64_t{1} * shape.heads * shape.head_dim;
  const int64_t length = test.end - test.first_position;
  // Rows past the context are NaN: to read one is to be found out.
  std::vector<std::vector<float>> pages;
  std::vector<std::unique_ptr<DeviceArray<float>>> device_pages;
  std::vector<const float*> host_addresses, addresses;
  for (int64_t first = 0; first < length; first += test.page_rows) {
    std::vector<float> page = RandomFloats(2 * test.page_rows * width, 100 + first);
    for (int64_t row = length - first; row < test.page_rows; ++row) {
      for (int64_t i = 0; i < width; ++i) {
        page[row * width + i] = std::numeric_limits<float>::quiet_NaN();
        page[(test.page_rows + row) * width + i] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    pages.push_back(std::move(page));
  }
  for (const std::vector<float>& page : pages) {
    host_addresses.push_back(page.data());
    device_pages.push_back(std::make_unique<DeviceArray<float>>(page));
    addresses.push_back(device_pages.back()->data());
  }
  std::vector<float> q = HardFloats(test.rows * cols, 1);
  for (float& value : q) value *= 4.0f;
  const std::vector<float> k = HardFloats(test.rows * width, 2, 3.0f);
  const std::vector<float> v = HardFloats(test.rows * width, 3, 30.0f);

  ThreadPool pool(2);
  CpuDraftOps ops(pool);
  std::vector<float> expected(q.size());
  ASSERT_TRUE(
      ops.DraftAttention({shape.heads, shape.kv_heads, shape.head_dim, shape.window, shape.causal},
                         {test.first_position, test.end, test.page_rows, host_addresses},
                         {q.data(), test.rows, cols}, {k.data(), test.rows, width},
                         {v.data(), test.rows, width}, {expected.data(), test.rows, cols}));

  const DeviceArray<const float*> device_addresses(addresses);
  const DraftContextPages context{test.first_position, test.end, test.page_rows,
                                  device_addresses.data()};
  const DeviceArray<float> device_q(q), device_k(k), device_v(v), out(q.size());
  const DeviceArray<float> scratch(
      static_cast<size_t>(DraftAttentionScratchFloats(shape, context, test.rows)));
  ASSERT_EQ(LaunchDraftAttention(shape, context, device_q.data(), device_k.data(), device_v.data(),
                                 test.rows, scratch.data(), out.data(), nullptr),
            cudaSuccess);
  ASSERT_EQ(BitDifference(expected, out.Download()), "");
  scratch.Download();  // checks the bands
}

TEST(DraftAttentionGpu, HasTheBitsOfTheDefinition) {
  const DraftAttentionShape published{.heads = 32, .kv_heads = 8, .head_dim = 128};
  for (const int64_t rows : {1, 2, 3, 7, 8, 9, 16, 17}) {
    ExpectAttention({.shape = published, .end = 150, .page_rows = 64, .rows = rows});
  }
  // No context, one key, around the staged 64 keys and the summed 128.
  for (const int64_t length : {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 121, 500}) {
    ExpectAttention({.shape = {.heads = 4, .kv_heads = 2, .head_dim = 128},
                     .first_position = 5,
                     .end = 5 + length,
                     .rows = 8});
  }
  for (const int64_t rows : {31, 64, 127, 128}) {
    ExpectAttention(
        {.shape = {.heads = 6, .kv_heads = 1, .head_dim = 64}, .end = 33, .rows = rows});
  }
}

TEST(DraftAttentionGpu, WindowsAndCausalBlocks) {
  for (const bool causal : {false, true}) {
    for (const int64_t window : {0, 1, 3, 8, 20, 64, 100, 1000}) {
      for (const int64_t end : {0, 7, 90, 333}) {
        ExpectAttention(
            {.shape =
                 {.heads = 5, .kv_heads = 1, .head_dim = 48, .window = window, .causal = causal},
             .first_position = end / 3,
             .end = end,
             .page_rows = 10,
             .rows = 8});
      }
    }
  }
}

TEST(DraftAttentionGpu, OtherHeadSizes) {
  for (const int dim : {1, 16, 40, 127, 129, 256, 300}) {
    ExpectAttention({.shape = {.heads = 6, .kv_heads = 2, .head_dim = dim}, .end = 70, .rows = 3});
  }
}

TEST(DraftAttentionGpu, ALongContext) {
  // More blocks of 128 keys than are summed at once.
  ExpectAttention({.shape = {.heads = 2, .kv_heads = 1, .head_dim = 32},
                   .end = 40000,
                   .page_rows = 4096,
                   .rows = 4});
}

TEST(DraftAttentionGpu, RefusesShapesItCannotRun) {
  EXPECT_EQ(LaunchDraftAttention({.heads = 3, .kv_heads = 2, .head_dim = 64}, {}, nullptr, nullptr,
                                 nullptr, 1, nullptr, nullptr, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(LaunchDraftAttention({.heads = 2, .kv_heads = 2, .head_dim = 64}, {.end = 5}, nullptr,
                                 nullptr, nullptr, 1, nullptr, nullptr, nullptr),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace hallmark
