// SPDX-License-Identifier: Apache-2.0
// Clause row-invariance of the EXL3 linear for long prompts: decoded weights are those of the
// definition, and every row has the bits that LaunchExl3Linear gives it, at every rate, range plan,
// row count and width.
#include "kernels/exl3/exl3_prompt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "conformance/harness/comparators.h"
#include "conformance/harness/random_exl3.h"
#include "engine/backend/cuda/kernels_test/exl3_device_layer.h"
#include "engine/backend/exl3_codec.h"

namespace hallmark {
namespace {

class DecodedLayer {
 public:
  explicit DecodedLayer(const DeviceExl3& layer)
      : wq_(Exl3DecodedBytes(layer.layer().k, layer.layer().n) / 2) {
    CheckCuda(LaunchExl3Decode(layer.rate(), layer.layer(), wq_.data(), nullptr),
              "LaunchExl3Decode");
  }
  const void* data() const { return wq_.data(); }
  std::vector<uint16_t> Download() const { return wq_.Download(); }

 private:
  DeviceArray<uint16_t> wq_;
};

// Columns [0, columns) of y [rows, stride] that starts `offset` floats into its memory. What is not
// written stays NaN, in the reference too.
struct Output {
  int64_t columns;
  int64_t stride;
  int64_t offset = 0;
  size_t Floats(int64_t rows) const { return static_cast<size_t>(offset + rows * stride); }
};

std::vector<float> Reference(const DeviceExl3& layer, Exl3RangePlan plan, const void* xh,
                             int64_t rows, const Output& out) {
  const DeviceArray<float> y(out.Floats(rows));
  Exl3Part part =
      MakeExl3Part(layer.layer(), xh, 0, out.columns, y.data() + out.offset, out.stride);
  part.plan = plan;
  const DeviceWorkspace workspace({&part, 1}, rows, 8);
  CheckCuda(LaunchExl3Linear(layer.rate(), {&part, 1}, rows, workspace.get(), nullptr, 8),
            "LaunchExl3Linear");
  return y.Download();
}

std::vector<float> Prompt(const DeviceExl3& layer, Exl3RangePlan plan, const DecodedLayer& wq,
                          const void* xh, int64_t rows, const Output& out) {
  const DeviceArray<float> y(out.Floats(rows));
  CheckCuda(LaunchExl3Prompt(layer.layer(), plan, wq.data(), xh, rows, y.data() + out.offset,
                             out.stride, out.columns, nullptr),
            "LaunchExl3Prompt");
  return y.Download();
}

TEST(Exl3PromptGpu, DecodesEveryWeightOfEveryRate) {
  constexpr int64_t kK = 256;
  constexpr int64_t kN = 384;
  size_t rates = 0;
  for (const Exl3Rate& rate : AllExl3Rates()) {
    SCOPED_TRACE(testing::Message() << CodebookName(rate.codebook) << " k2 " << rate.k2);
    const HostExl3 host({static_cast<int>(rate.codebook), rate.k2}, kK, kN, false, 101 + rates);
    const DeviceExl3 device(host);
    const std::vector<uint16_t> found = DecodedLayer(device).Download();
    std::vector<uint16_t> expected(found.size());
    const size_t tile_words = static_cast<size_t>(TileWords(rate.k2));
    for (int64_t tile = 0; tile < kK / 16 * (kN / 16); ++tile) {
      std::vector<uint16_t> words(tile_words);
      std::memcpy(words.data(), host.words.data() + static_cast<size_t>(tile) * tile_words / 2,
                  tile_words * sizeof(uint16_t));
      uint16_t values[kTileWeights];
      DecodeTile(words.data(), rate, values);
      for (int i = 0; i < kTileWeights; ++i) {
        const int64_t input = tile / (kN / 16) * 16 + i / 16;
        const int64_t output = tile % (kN / 16) * 16 + i % 16;
        expected[Exl3DecodedIndex(input, output, kK)] = values[i];
      }
    }
    const BitComparison bits = CompareBits<uint16_t>(expected, found);
    ASSERT_TRUE(bits.Passed()) << bits.ToString();
    ++rates;
  }
  EXPECT_EQ(rates, 27u);
}

// Plans: that of the size, one range, ranges of one k-tile, ranges of unequal lengths.
TEST(Exl3PromptGpu, EveryRateHasTheBitsOfTheLinear) {
  constexpr int64_t kN = 256;
  constexpr int64_t kMostRows = 2048;
  constexpr int64_t kRowCounts[] = {129, 200, 1023, 1024, 2048};
  constexpr Output kOut = {kN, kN};
  size_t compared = 0;
  for (const int64_t k : {512, 1024}) {
    const Exl3RangePlan plans[] = {Exl3RangePlanOf(k, kN), {1, 1}, {16, 2}, {3, 5}, {2, 8}};
    const std::vector<float> x = RandomRows(kMostRows, k, 111);
    for (const Exl3Rate& rate : AllExl3Rates()) {
      const HostExl3 host({static_cast<int>(rate.codebook), rate.k2}, k, kN, rate.k2 == 8, 112);
      const DeviceExl3 device(host);
      const DecodedLayer wq(device);
      std::vector<std::vector<float>> expected;
      {
        const RotatedRows xh(device, x, kMostRows, k);
        for (const Exl3RangePlan& plan : plans) {
          expected.push_back(Reference(device, plan, xh.data(), kMostRows, kOut));
        }
      }
      for (const int64_t rows : kRowCounts) {
        const auto part = std::span(x).first(static_cast<size_t>(rows * k));
        const RotatedRows xh(device, part, rows, k);
        for (size_t i = 0; i < std::size(plans); ++i) {
          const std::vector<float> found = Prompt(device, plans[i], wq, xh.data(), rows, kOut);
          const BitComparison bits =
              CompareBits<float>(std::span(expected[i]).first(found.size()), found);
          ASSERT_TRUE(bits.Passed()) << CodebookName(rate.codebook) << " k2 " << rate.k2 << ", K "
                                     << k << ", " << rows << " rows, plan " << plans[i].splits
                                     << " x " << plans[i].warps << ": " << bits.ToString();
          ++compared;
        }
      }
      // What is compared is finite, and the plan shows in the bits: else equal bits mean little.
      ASSERT_TRUE(std::all_of(expected[0].begin(), expected[0].end(),
                              [](float value) { return std::isfinite(value); }));
      ASSERT_FALSE(CompareBits<float>(expected[1], expected[3]).Passed());
      ASSERT_FALSE(CompareBits<float>(expected[3], expected[4]).Passed());
    }
  }
  EXPECT_EQ(compared, 2u * 27u * 5u * 5u);
}

// More row tiles than a band holds, a last tile of one row, and several bands.
TEST(Exl3PromptGpu, ManyRowTilesKeepTheirPlaces) {
  constexpr int64_t kK = 256;
  constexpr int64_t kN = 384;
  constexpr int64_t kRows = 8192;
  const HostExl3 host({2, 7}, kK, kN, true, 121);
  const DeviceExl3 device(host);
  const DecodedLayer wq(device);
  const std::vector<float> x = RandomRows(kRows, kK, 122);
  const RotatedRows xh(device, x, kRows, kK);
  const Exl3RangePlan plan{2, 4};
  const Output out = {kN, kN};
  const std::vector<float> expected = Reference(device, plan, xh.data(), kRows, out);
  for (const int64_t rows : {1, 8, 128, 2049, 2176, 4097, 8192}) {
    const std::vector<float> found = Prompt(device, plan, wq, xh.data(), rows, out);
    const BitComparison bits = CompareBits<float>(std::span(expected).first(found.size()), found);
    ASSERT_TRUE(bits.Passed()) << rows << " rows: " << bits.ToString();
  }
}

TEST(Exl3PromptGpu, WritesItsColumnsAlone) {
  constexpr int64_t kK = 1024;
  constexpr int64_t kN = 384;
  constexpr int64_t kRows = 200;
  const HostExl3 host({2, 6}, kK, kN, true, 131);
  const DeviceExl3 device(host);
  const DecodedLayer wq(device);
  const std::vector<float> x = RandomRows(kRows, kK, 132);
  const RotatedRows xh(device, x, kRows, kK);
  for (const Output& out :
       {Output{384, 384}, Output{300, 300}, Output{301, 301}, Output{257, 384}, Output{300, 512, 4},
        Output{384, 400, 3}, Output{1, 1}, Output{2, 7}, Output{127, 128}, Output{128, 128, 2}}) {
    for (const Exl3RangePlan plan : {Exl3RangePlanOf(kK, kN), Exl3RangePlan{3, 4}}) {
      const std::vector<float> expected = Reference(device, plan, xh.data(), kRows, out);
      const std::vector<float> found = Prompt(device, plan, wq, xh.data(), kRows, out);
      const BitComparison bits = CompareBits<float>(expected, found);
      EXPECT_TRUE(bits.Passed()) << out.columns << " columns, stride " << out.stride << ", offset "
                                 << out.offset << ": " << bits.ToString();
      const auto written = std::count_if(found.begin(), found.end(),
                                         [](float value) { return std::isfinite(value); });
      EXPECT_EQ(written, kRows * out.columns);
    }
  }
}

struct Shape {
  int64_t k, n;
};
class Exl3PromptShapesGpu : public testing::TestWithParam<Shape> {};

TEST_P(Exl3PromptShapesGpu, HasTheBitsOfTheLinear) {
  const auto [k, n] = GetParam();
  constexpr int64_t kMostRows = 2048;
  SplitMix64 random(141);
  std::vector<uint16_t> halves(Exl3RotatedBytes(kMostRows, k) / 2);
  for (uint16_t& half : halves) half = FloatToHalf(random.NextSigned());
  const DeviceArray<uint16_t> xh(halves);
  const Exl3RangePlan plan = Exl3RangePlanOf(k, n);
  ASSERT_GT(plan.splits, 1);
  for (const Exl3KernelRate rate : {Exl3KernelRate{2, 8}, Exl3KernelRate{1, 6}}) {
    const HostExl3 host(rate, k, n, false, 142);
    const DeviceExl3 device(host);
    const DecodedLayer wq(device);
    const std::vector<float> expected = Reference(device, plan, xh.data(), kMostRows, {n, n});
    ASSERT_TRUE(std::all_of(expected.begin(), expected.end(),
                            [](float value) { return std::isfinite(value); }));
    for (const int64_t rows : {129, 1000, 2048}) {
      const std::vector<float> found = Prompt(device, plan, wq, xh.data(), rows, {n, n});
      const BitComparison bits = CompareBits<float>(std::span(expected).first(found.size()), found);
      ASSERT_TRUE(bits.Passed()) << "codebook " << rate.codebook << ", " << rows
                                 << " rows: " << bits.ToString();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Linears, Exl3PromptShapesGpu,
                         testing::Values(Shape{5120, 17408}, Shape{17408, 5120}));

TEST(Exl3PromptGpu, RefusesWhatItCannotDo) {
  const HostExl3 host({2, 8}, 256, 128, false, 151);
  const DeviceExl3 device(host);
  const DecodedLayer wq(device);
  const Exl3DeviceLayer& layer = device.layer();
  const DeviceArray<float> y(128);
  const DeviceArray<uint16_t> xh(size_t{8 * 256});
  const auto decode = [&](Exl3KernelRate rate, int64_t k, int64_t n) {
    const Exl3DeviceLayer changed{layer.trellis, layer.svh, nullptr, k, n};
    const DeviceArray<uint16_t> to(size_t{256 * 128});
    return LaunchExl3Decode(rate, changed, to.data(), nullptr);
  };
  EXPECT_EQ(decode({2, 8}, 256, 128), cudaSuccess);
  EXPECT_EQ(decode({1, 5}, 256, 128), cudaErrorInvalidValue);  // half widths are mul1's
  EXPECT_EQ(decode({3, 8}, 256, 128), cudaErrorInvalidValue);
  EXPECT_EQ(decode({2, 9}, 256, 128), cudaErrorInvalidValue);
  EXPECT_EQ(decode({2, 8}, 192, 128), cudaErrorInvalidValue);
  EXPECT_EQ(decode({2, 8}, 256, 64), cudaErrorInvalidValue);
  const auto multiply = [&](Exl3RangePlan plan, int64_t rows, int64_t columns, int64_t stride) {
    return LaunchExl3Prompt(layer, plan, wq.data(), xh.data(), rows, y.data(), stride, columns,
                            nullptr);
  };
  EXPECT_EQ(multiply({2, 8}, 1, 128, 128), cudaSuccess);
  EXPECT_EQ(multiply({2, 8}, 0, 128, 128), cudaSuccess);
  EXPECT_EQ(multiply({2, 8}, -1, 128, 128), cudaErrorInvalidValue);
  EXPECT_EQ(multiply({3, 8}, 1, 128, 128), cudaErrorInvalidValue);  // 24 ranges of 16 k-tiles
  EXPECT_EQ(multiply({0, 8}, 1, 128, 128), cudaErrorInvalidValue);
  EXPECT_EQ(multiply({1, 9}, 1, 128, 128), cudaErrorInvalidValue);
  EXPECT_EQ(multiply({2, 8}, 1, 129, 129), cudaErrorInvalidValue);
  EXPECT_EQ(multiply({2, 8}, 1, 0, 128), cudaErrorInvalidValue);
  EXPECT_EQ(multiply({2, 8}, 1, 128, 127), cudaErrorInvalidValue);
  CheckCuda(cudaDeviceSynchronize(), "the launches that were right");
}

}  // namespace
}  // namespace hallmark
