// SPDX-License-Identifier: Apache-2.0
// Attention on the GPU: close to the CPU's definition within a registered tolerance, and the same
// bits whoever shares the call, wherever segments end and whatever lies in memory beside the keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "conformance/harness/tolerances.h"
#include "engine/backend/cpu/mixer_ops.h"
#include "engine/backend/cuda/kernels_test/attention_data.h"
#include "engine/backend/cuda/kernels_test/float_data.h"
#include "engine/base/float_types.h"
#include "kernels/mixers/attention.h"

namespace hallmark {
namespace {

constexpr KvType kTypes[] = {KvType::kBf16, KvType::kFp8E4m3};

struct Inputs {
  std::vector<float> q;
  std::vector<float> q_gate;
};
// Queries that are bf16 and make scores with a deviation of about three: a few keys matter most.
Inputs RandomInputs(const AttentionGeometry& geometry, int64_t rows, uint64_t seed) {
  SplitMix64 random(seed);
  Inputs inputs;
  inputs.q.resize(static_cast<size_t>(rows * geometry.heads * geometry.head_dim));
  inputs.q_gate.resize(2 * inputs.q.size());
  for (float& x : inputs.q) x = RoundToBf16(random.NextNormal() * 3.0f);
  for (float& x : inputs.q_gate) x = random.NextNormal() + 1.0f;
  return inputs;
}

// Rows [first, first + rows) of `inputs`, whose row 0 stands at `position`. No chunks_per_segment:
// as many as there are; `beyond`: how far the limit lies past the last row.
std::vector<float> Attend(const AttentionGeometry& geometry, KvType type, const Inputs& inputs,
                          int64_t position, int64_t first, int64_t rows, const DevicePages& pages,
                          int64_t chunks_per_segment = 0, int64_t beyond = 0) {
  const int64_t width = int64_t{geometry.heads} * geometry.head_dim;
  auto slice = [&](const std::vector<float>& all, int64_t cols) {
    return std::vector<float>(all.begin() + first * cols, all.begin() + (first + rows) * cols);
  };
  const DeviceArray<float> q(slice(inputs.q, width)), q_gate(slice(inputs.q_gate, 2 * width));
  const DeviceArray<float> out(static_cast<size_t>(rows * width));
  const int64_t limit = position + first + rows + beyond;
  const int64_t chunks = chunks_per_segment == 0 ? AttentionChunks(limit) : chunks_per_segment;
  const DeviceArray<unsigned char> workspace(
      AttentionWorkspaceBytes(rows, geometry.heads, geometry.head_dim, chunks));
  CheckCuda(LaunchAttention(ShapeOf(geometry), FormatOf(type), pages.PlaceAt(position + first),
                            limit, rows, q.data(), q_gate.data(), chunks, workspace.data(),
                            workspace.size(), out.data(), nullptr),
            "LaunchAttention");
  std::vector<float> found = out.Download();
  workspace.Download();  // its guard bands
  return found;
}

std::vector<float> AttendOnCpu(const AttentionGeometry& geometry, const Inputs& inputs,
                               int64_t position, int64_t rows, const HostPages& pages) {
  const int64_t width = int64_t{geometry.heads} * geometry.head_dim;
  std::vector<float> expected(static_cast<size_t>(rows * width));
  ThreadPool pool(1);
  CpuAttention(geometry, position, {inputs.q.data(), rows, width},
               {inputs.q_gate.data(), rows, 2 * width}, pages.kv(), {expected.data(), rows, width},
               kScalarMixerLoops, pool);
  return expected;
}

// The largest difference; infinite if a value is not finite or there is none.
double WorstDifference(const std::vector<float>& expected, const std::vector<float>& found) {
  if (expected.empty() || expected.size() != found.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(double{expected[i]} - double{found[i]});
    if (!std::isfinite(difference)) return INFINITY;
    worst = std::max(worst, difference);
  }
  return worst;
}

class AttentionGpu : public testing::Test {
 protected:
  // Returns the largest difference of `rows` rows that end with `context` keys.
  double Compare(const AttentionGeometry& geometry, KvType type, int64_t context, int64_t rows) {
    HostPages pages(type, geometry, context);
    pages.StoreRandom(context, static_cast<uint64_t>(context));
    const Inputs inputs = RandomInputs(geometry, rows, 7);
    const int64_t position = context - rows;
    const auto expected = AttendOnCpu(geometry, inputs, position, rows, pages);
    const double worst = WorstDifference(
        expected, Attend(geometry, type, inputs, position, 0, rows, DevicePages(pages)));
    EXPECT_LE(worst, Tolerance("cuda-attention-absolute"))
        << context << " keys, " << rows << " rows, head_dim " << geometry.head_dim
        << (type == KvType::kBf16 ? " bf16" : " fp8");
    return worst;
  }
};

TEST_F(AttentionGpu, IsCloseToTheDefinition) {
  double worst = 0;
  for (const int head_dim : {128, 256}) {
    const AttentionGeometry geometry = {2, 1, head_dim, 64, 1e-6f};
    for (const KvType type : kTypes) {
      for (const int64_t context : {1, 2, 63, 64, 65, 511, 512, 513, 1000, 4095, 4096, 4097}) {
        worst = std::max(worst, Compare(geometry, type, context, 1));
      }
    }
  }
  std::printf("largest difference %.3g\n", worst);
}

TEST_F(AttentionGpu, ManyRowsAndHeadsAreCloseToTheDefinition) {
  double worst = 0;
  for (const KvType type : kTypes) {
    worst = std::max(worst, Compare({12, 2, 256, 64, 1e-6f}, type, 70, 70));
    worst = std::max(worst, Compare({12, 2, 256, 64, 1e-6f}, type, 530, 9));
    worst = std::max(worst, Compare({6, 3, 128, 64, 1e-6f}, type, 600, 33));
    worst = std::max(worst, Compare({4, 4, 128, 64, 1e-6f}, type, 515, 17));
  }
  std::printf("largest difference %.3g\n", worst);
}

// One key holds nearly all the weight, wherever it stands: a key that is lost, doubled or taken
// from another head or page shows at once.
TEST_F(AttentionGpu, OneKeyThatMattersIsFoundAnywhere) {
  constexpr int64_t kContext = 1100;
  for (const int head_dim : {128, 256}) {
    const AttentionGeometry geometry = {4, 2, head_dim, 64, 1e-6f};
    for (const KvType type : kTypes) {
      for (const int64_t needle : {0, 1, 15, 16, 63, 64, 255, 256, 511, 512, 1023, 1024, 1099}) {
        HostPages pages(type, geometry, kContext);
        pages.StoreRandom(kContext, 3);
        const Inputs inputs = RandomInputs(geometry, 1, 11);
        for (int head = 0; head < geometry.kv_heads; ++head) {
          // Turned to the first query of its group.
          const int64_t at = int64_t{head} * (geometry.heads / geometry.kv_heads) * head_dim;
          pages.Store(false, needle, head,
                      {inputs.q.begin() + at, inputs.q.begin() + at + head_dim});
        }
        const auto expected = AttendOnCpu(geometry, inputs, kContext - 1, 1, pages);
        const auto found = Attend(geometry, type, inputs, kContext - 1, 0, 1, DevicePages(pages));
        ASSERT_LE(WorstDifference(expected, found), Tolerance("cuda-attention-absolute"))
            << "key " << needle << ", head_dim " << head_dim;
      }
    }
  }
}

// Clause: row-invariance.
TEST_F(AttentionGpu, ARowHasTheBitsOfTheRowAlone) {
  constexpr int64_t kPosition = 450;  // the rows cross tiles, a page and a chunk
  constexpr int64_t kRows = 128;
  std::vector<int64_t> counts;
  for (int64_t rows = 1; rows <= 17; ++rows) counts.push_back(rows);
  for (const int64_t rows : {31, 32, 33, 63, 64, 65, 127, 128}) counts.push_back(rows);
  for (const AttentionGeometry& geometry :
       {AttentionGeometry{6, 1, 256, 64, 1e-6f}, AttentionGeometry{4, 2, 128, 64, 1e-6f}}) {
    const int64_t width = int64_t{geometry.heads} * geometry.head_dim;
    for (const KvType type : kTypes) {
      HostPages pages(type, geometry, kPosition + kRows);
      pages.StoreRandom(kPosition + kRows, 5);
      const DevicePages device(pages);
      const Inputs inputs = RandomInputs(geometry, kRows, 6);
      std::vector<float> alone;
      for (int64_t row = 0; row < kRows; ++row) {
        const auto one = Attend(geometry, type, inputs, kPosition, row, 1, device);
        alone.insert(alone.end(), one.begin(), one.end());
      }
      for (const int64_t rows : counts) {
        const std::vector<float> expected(alone.begin(), alone.begin() + rows * width);
        ASSERT_EQ(
            BitDifference(expected, Attend(geometry, type, inputs, kPosition, 0, rows, device)), "")
            << rows << " rows, head_dim " << geometry.head_dim;
      }
      // From another first row, so that a row sits elsewhere in its tile of query vectors.
      const std::vector<float> tail(alone.begin() + 61 * width, alone.end());
      ASSERT_EQ(
          BitDifference(tail, Attend(geometry, type, inputs, kPosition, 61, kRows - 61, device)),
          "");
    }
  }
}

// The first rows of a sequence, where a row sees a part of the first tile.
TEST_F(AttentionGpu, TheFirstRowsHaveTheBitsOfTheRowAlone) {
  const AttentionGeometry geometry = {6, 1, 256, 64, 1e-6f};
  constexpr int64_t kRows = 80;
  HostPages pages(KvType::kBf16, geometry, kRows);
  pages.StoreRandom(kRows, 8);
  const DevicePages device(pages);
  const Inputs inputs = RandomInputs(geometry, kRows, 9);
  std::vector<float> alone;
  for (int64_t row = 0; row < kRows; ++row) {
    const auto one = Attend(geometry, KvType::kBf16, inputs, 0, row, 1, device);
    alone.insert(alone.end(), one.begin(), one.end());
  }
  ASSERT_EQ(BitDifference(alone, Attend(geometry, KvType::kBf16, inputs, 0, 0, kRows, device)), "");
}

TEST_F(AttentionGpu, SegmentsChangeNoBit) {
  const AttentionGeometry geometry = {6, 1, 128, 64, 1e-6f};
  constexpr int64_t kPosition = 66 * 512 - 10;  // more chunks than the merge takes at once
  constexpr int64_t kRows = 20;
  for (const KvType type : kTypes) {
    HostPages pages(type, geometry, kPosition + kRows);
    pages.StoreRandom(kPosition + kRows, 12);
    const DevicePages device(pages);
    const Inputs inputs = RandomInputs(geometry, kRows, 13);
    const auto whole = Attend(geometry, type, inputs, kPosition, 0, kRows, device);
    for (const int64_t chunks : {1, 2, 5, 64, 65, 66, 67, 1000}) {
      ASSERT_EQ(
          BitDifference(whole, Attend(geometry, type, inputs, kPosition, 0, kRows, device, chunks)),
          "")
          << chunks << " chunks a segment";
    }
  }
}

// Clause: graph-equals-eager. A recorded launch has blocks for keys that no row sees yet.
TEST_F(AttentionGpu, AFurtherLimitChangesNoBit) {
  const AttentionGeometry geometry = {6, 1, 256, 64, 1e-6f};
  for (const KvType type : kTypes) {
    for (const int64_t context : {1, 64, 511, 512, 513, 1030}) {
      const int64_t rows = std::min<int64_t>(context, 8);
      HostPages pages(type, geometry, context);
      pages.StoreRandom(context, 16);
      const DevicePages device(pages);
      const Inputs inputs = RandomInputs(geometry, rows, 17);
      const auto exact = Attend(geometry, type, inputs, context - rows, 0, rows, device);
      for (const int64_t beyond : {1, 511, 512, 4000}) {
        for (const int64_t chunks : {0, 1, 3}) {
          ASSERT_EQ(BitDifference(exact, Attend(geometry, type, inputs, context - rows, 0, rows,
                                                device, chunks, beyond)),
                    "")
              << context << " keys, limit " << beyond << " beyond, " << chunks << " chunks";
        }
      }
    }
  }
}

TEST_F(AttentionGpu, WhatLiesBesideTheKeysChangesNoBit) {
  const AttentionGeometry geometry = {4, 2, 256, 64, 1e-6f};
  for (const KvType type : kTypes) {
    for (const int64_t context : {1, 63, 65, 300, 513, 1000}) {
      const int64_t rows = std::min<int64_t>(context, 5);
      const Inputs inputs = RandomInputs(geometry, rows, 14);
      HostPages poisoned(type, geometry, context, 0xFF);
      HostPages zeroed(type, geometry, context, 0);
      poisoned.StoreRandom(context, 15);
      zeroed.StoreRandom(context, 15);
      const auto expected =
          Attend(geometry, type, inputs, context - rows, 0, rows, DevicePages(zeroed));
      ASSERT_EQ(WorstDifference(expected, expected), 0.0);
      const size_t pages = zeroed.bytes().size() / zeroed.page_bytes();
      // A stride without a common divisor with the slots moves every page somewhere else.
      const size_t stride = pages + 1;
      for (const size_t step : {size_t{1}, stride}) {
        ASSERT_EQ(BitDifference(expected, Attend(geometry, type, inputs, context - rows, 0, rows,
                                                 DevicePages(poisoned, step))),
                  "")
            << context << " keys";
      }
    }
  }
}

TEST_F(AttentionGpu, OtherShapesAndSmallWorkspacesAreRefused) {
  auto launch = [](AttentionShape shape, int64_t limit, int64_t rows, int64_t chunks,
                   size_t bytes) {
    const DeviceArray<unsigned char> workspace(1);
    return LaunchAttention(shape, KvFormat::kBf16, KvPlace(), limit, rows, nullptr, nullptr, chunks,
                           workspace.data(), bytes, nullptr, nullptr);
  };
  constexpr size_t kEnough = size_t{1} << 40;
  EXPECT_EQ(launch({4, 2, 256}, 0, 0, 1, 0), cudaSuccess);
  EXPECT_EQ(launch({4, 2, 384}, 1, 1, 1, kEnough), cudaErrorInvalidValue);
  EXPECT_EQ(launch({4, 3, 256}, 1, 1, 1, kEnough), cudaErrorInvalidValue);
  EXPECT_EQ(launch({4, 2, 256}, 0, 1, 1, kEnough), cudaErrorInvalidValue);
  EXPECT_EQ(launch({4, 2, 256}, 1, 1, 0, kEnough), cudaErrorInvalidValue);
  EXPECT_EQ(launch({4, 2, 256}, (1 << 24) + 1, 1, 1, kEnough), cudaErrorInvalidValue);
  EXPECT_EQ(launch({4, 2, 256}, 600, 1, 2, AttentionWorkspaceBytes(1, 4, 256, 2) - 1),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace hallmark
