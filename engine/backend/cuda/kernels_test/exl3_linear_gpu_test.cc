// SPDX-License-Identifier: Apache-2.0
// Clauses row-invariance, slice-equals-parent and counters-zero of the EXL3 linear on the GPU: bits
// within the GPU, and the scalar definition within a registered tolerance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "conformance/harness/comparators.h"
#include "conformance/harness/random_exl3.h"
#include "conformance/harness/tolerances.h"
#include "engine/backend/cuda/kernels_test/exl3_device_layer.h"
#include "engine/backend/exl3_codec.h"

namespace hallmark {
namespace {

std::vector<float> Multiply(const DeviceExl3& layer, const RotatedRows& xh, int64_t rows,
                            int tile_rows) {
  const int64_t n = layer.layer().n;
  const DeviceArray<float> y(static_cast<size_t>(rows * n));
  const Exl3Part part = MakeExl3Part(layer.layer(), xh.data(), 0, n, y.data(), n);
  const DeviceWorkspace workspace({&part, 1}, rows, tile_rows);
  CheckCuda(LaunchExl3Linear(layer.rate(), {&part, 1}, rows, workspace.get(), nullptr, tile_rows),
            "LaunchExl3Linear");
  std::vector<float> found = y.Download();
  EXPECT_TRUE(workspace.CountersAreZero());
  return found;
}

std::vector<float> MultiplyRows(const DeviceExl3& layer, std::span<const float> x, int64_t first,
                                int64_t rows, int tile_rows) {
  const int64_t k = layer.layer().k;
  const auto part = x.subspan(static_cast<size_t>(first * k), static_cast<size_t>(rows * k));
  return Multiply(layer, RotatedRows(layer, part, rows, k), rows, tile_rows);
}

TEST(Exl3LinearGpu, IsCloseToTheDefinition) {
  double worst = 0;
  for (const Exl3Rate& rate : AllExl3Rates()) {
    const HostExl3 host({static_cast<int>(rate.codebook), rate.k2}, 1024, 256, true, 31);
    const DeviceExl3 device(host);
    const std::vector<float> x = RandomRows(5, 1024, 32);
    const std::vector<float> found = Multiply(device, RotatedRows(device, x, 5, 1024), 5, 0);
    std::vector<float> suh, svh;
    for (const uint16_t half : host.suh) suh.push_back(HalfToFloat(half));
    for (const uint16_t half : host.svh) svh.push_back(HalfToFloat(half));
    std::vector<float> expected(found.size());
    ASSERT_TRUE(
        RefExl3Linear({rate, host.k, host.n, reinterpret_cast<const uint16_t*>(host.words.data()),
                       suh.data(), svh.data(), host.bias.data()},
                      x.data(), 5, 1024, 256, expected.data()));
    const Drift drift = MeasureDrift(expected, found, 256);
    EXPECT_EQ(drift.non_finite, 0u);
    worst = std::max(worst, drift.worst_rms);
  }
  std::printf("worst rms %.3g of the row's deviation\n", worst);
  EXPECT_LT(worst, Tolerance("cuda-exl3-linear-rms"));
}

// Every row count, every tile height, every rate: row i of m is the row alone.
TEST(Exl3LinearGpu, RowsAreIndependentOfWhoSharesTheCall) {
  constexpr int64_t kRows = 128;
  for (const Exl3Rate& rate : AllExl3Rates()) {
    SCOPED_TRACE(testing::Message() << CodebookName(rate.codebook) << " k2 " << rate.k2);
    const HostExl3 host({static_cast<int>(rate.codebook), rate.k2}, 512, 128, false, 41);
    const DeviceExl3 device(host);
    ASSERT_GT(Exl3RangePlanOf(512, 128).warps, 1);
    const std::vector<float> x = RandomRows(kRows, 512, 42);
    std::vector<float> alone;
    for (int64_t row = 0; row < kRows; ++row) {
      const std::vector<float> y = MultiplyRows(device, x, row, 1, 8);
      alone.insert(alone.end(), y.begin(), y.end());
    }
    for (const int tile : kExl3TileRows) {
      const bool all = tile == kExl3TileRows[0] || rate.k2 == 6;
      for (int64_t rows = 1; rows <= kRows; rows += all ? 1 : 31) {
        const std::vector<float> y = MultiplyRows(device, x, 0, rows, tile);
        const BitComparison bits =
            CompareBits<float>(std::span(alone).first(static_cast<size_t>(rows * 128)), y);
        ASSERT_TRUE(bits.Passed()) << rows << " rows, tile " << tile << ": " << bits.ToString();
      }
    }
  }
}

TEST(Exl3LinearGpu, PartsOfOneLaunchEqualTheirOwn) {
  constexpr int64_t kK = 2048;
  constexpr int64_t kRows = 19;
  const std::vector<float> x = RandomRows(kRows, kK, 51);
  const HostExl3 hosts[] = {
      {{2, 6}, kK, 1024, false, 52}, {{2, 6}, kK, 256, true, 53}, {{2, 6}, kK, 384, false, 54}};
  std::vector<std::unique_ptr<DeviceExl3>> layers;
  std::vector<std::unique_ptr<RotatedRows>> inputs;
  std::vector<std::unique_ptr<DeviceArray<float>>> outputs;
  std::vector<Exl3Part> parts;
  for (const HostExl3& host : hosts) {
    layers.push_back(std::make_unique<DeviceExl3>(host));
    inputs.push_back(std::make_unique<RotatedRows>(*layers.back(), x, kRows, kK));
    outputs.push_back(std::make_unique<DeviceArray<float>>(static_cast<size_t>(kRows * host.n)));
    parts.push_back(MakeExl3Part(layers.back()->layer(), inputs.back()->data(), 0, host.n,
                                 outputs.back()->data(), host.n));
    ASSERT_GT(parts.back().plan.splits, 1);
  }
  const DeviceWorkspace workspace(parts, kRows, 0);
  CheckCuda(LaunchExl3Linear({2, 6}, parts, kRows, workspace.get(), nullptr), "LaunchExl3Linear");
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::vector<float> own = Multiply(*layers[i], *inputs[i], kRows, 8);
    const BitComparison bits = CompareBits<float>(own, outputs[i]->Download());
    EXPECT_TRUE(bits.Passed()) << "part " << i << ": " << bits.ToString();
  }
  EXPECT_TRUE(workspace.CountersAreZero());
}

TEST(Exl3LinearGpu, ASliceIsItsParentsColumns) {
  constexpr int64_t kK = 4096;
  constexpr int64_t kN = 25600;
  constexpr int64_t kReal = 25552;  // the last block has 80 real columns
  constexpr int64_t kRows = 7;
  const HostExl3 host({2, 12}, kK, kN, true, 61);
  const DeviceExl3 device(host);
  const std::vector<float> x = RandomRows(kRows, kK, 62);
  const RotatedRows xh(device, x, kRows, kK);
  const std::vector<float> whole = Multiply(device, xh, kRows, 0);
  // A plan of the slice's own width would differ: else this case shows nothing.
  ASSERT_NE(Exl3RangePlanOf(kK, 256).splits, Exl3RangePlanOf(kK, kN).splits);
  struct Span {
    int64_t first, count;
  };
  const std::vector<std::vector<Span>> slices = {
      {{0, 256}}, {{25472, 80}}, {{128, 128}, {1024, 512}, {25344, 208}}};
  for (const std::vector<Span>& spans : slices) {
    int64_t width = 0;
    for (const Span& span : spans) width += span.count;
    const DeviceArray<float> y(static_cast<size_t>(kRows * width));
    std::vector<Exl3Part> parts;
    std::vector<float> expected(static_cast<size_t>(kRows * width));
    int64_t at = 0;
    for (const Span& span : spans) {
      parts.push_back(
          MakeExl3Part(device.layer(), xh.data(), span.first, span.count, y.data() + at, width));
      for (int64_t row = 0; row < kRows; ++row) {
        std::copy_n(whole.begin() + row * kN + span.first, span.count,
                    expected.begin() + row * width + at);
      }
      at += span.count;
    }
    ASSERT_LE(spans.back().first + spans.back().count, kReal);
    const DeviceWorkspace workspace(parts, kRows, 0);
    CheckCuda(LaunchExl3Linear(device.rate(), parts, kRows, workspace.get(), nullptr),
              "LaunchExl3Linear");
    const BitComparison bits = CompareBits<float>(expected, y.Download());
    EXPECT_TRUE(bits.Passed()) << bits.ToString();
    EXPECT_TRUE(workspace.CountersAreZero());
  }
}

TEST(Exl3LinearGpu, AThousandLaunchesLeaveTheCountersZero) {
  constexpr int64_t kK = 2048;
  constexpr int64_t kRows = 17;
  const HostExl3 host({2, 8}, kK, 1024, false, 71);
  const DeviceExl3 device(host);
  const std::vector<float> x = RandomRows(kRows, kK, 72);
  const RotatedRows xh(device, x, kRows, kK);
  const DeviceArray<float> y(static_cast<size_t>(kRows * 1024));
  const Exl3Part part = MakeExl3Part(device.layer(), xh.data(), 0, 1024, y.data(), 1024);
  ASSERT_GT(part.plan.splits, 1);
  const DeviceWorkspace workspace({&part, 1}, kRows, 0);
  std::vector<float> first;
  for (int i = 0; i < 1000; ++i) {
    CheckCuda(LaunchExl3Linear(device.rate(), {&part, 1}, kRows, workspace.get(), nullptr),
              "launch");
    if (i % 100 != 0) continue;
    const std::vector<float> found = y.Download();
    if (first.empty()) first = found;
    const BitComparison bits = CompareBits<float>(first, found);
    ASSERT_TRUE(bits.Passed()) << "launch " << i << ": " << bits.ToString();
  }
  EXPECT_TRUE(workspace.CountersAreZero());
}

// The check behind counters-zero can fail: a counter that starts at another value makes a block
// sum early or never, which NaN-filled partials and outputs show.
TEST(Exl3LinearGpu, ACounterThatIsNotZeroShows) {
  constexpr int64_t kK = 2048;
  const HostExl3 host({2, 8}, kK, 128, false, 81);
  const DeviceExl3 device(host);
  const std::vector<float> x = RandomRows(1, kK, 82);
  const RotatedRows xh(device, x, 1, kK);
  const std::vector<float> right = Multiply(device, xh, 1, 0);
  const DeviceArray<float> y(128);
  const Exl3Part part = MakeExl3Part(device.layer(), xh.data(), 0, 128, y.data(), 128);
  const DeviceArray<float> partials(Exl3PartialsBytes({&part, 1}, 1) / 4);
  const DeviceArray<int32_t> counters(size_t{1});  // 0xFFFFFFFF
  CheckCuda(
      LaunchExl3Linear(device.rate(), {&part, 1}, 1, {partials.data(), counters.data()}, nullptr),
      "LaunchExl3Linear");
  EXPECT_FALSE(CompareBits<float>(right, y.Download()).Passed());
}

TEST(Exl3LinearGpu, RefusesWhatItCannotDo) {
  const HostExl3 host({2, 8}, 256, 128, false, 91);
  const DeviceExl3 device(host);
  const DeviceArray<float> y(128);
  const DeviceArray<uint16_t> xh(size_t{8 * 256});
  const Exl3Part part = MakeExl3Part(device.layer(), xh.data(), 0, 128, y.data(), 128);
  const auto launch = [&](Exl3KernelRate rate, Exl3Part changed, int tile = 0) {
    return LaunchExl3Linear(rate, {&changed, 1}, 1, {}, nullptr, tile);
  };
  EXPECT_EQ(launch({1, 5}, part), cudaErrorInvalidValue);  // half widths are mul1's
  EXPECT_EQ(launch({3, 8}, part), cudaErrorInvalidValue);
  EXPECT_EQ(launch({2, 9}, part), cudaErrorInvalidValue);
  EXPECT_EQ(launch({2, 8}, part, 24), cudaErrorInvalidValue);
  Exl3Part off = part;
  off.first_column = 64;
  EXPECT_EQ(launch({2, 8}, off), cudaErrorInvalidValue);
  off = part;
  off.columns = 256;
  EXPECT_EQ(launch({2, 8}, off), cudaErrorInvalidValue);
  off = part;
  off.plan.splits = 2;  // and no workspace
  EXPECT_EQ(launch({2, 8}, off), cudaErrorInvalidValue);
  EXPECT_EQ(LaunchExl3Linear({2, 8}, {&part, 1}, 0, {}, nullptr), cudaSuccess);
}

}  // namespace
}  // namespace hallmark
