// SPDX-License-Identifier: Apache-2.0
// Clause decode-exact on the GPU. Rows that hold a single one pick a row of W_q each: their sums
// are exact in any order, so that y is the output rotation of published weights, bit for bit. Every
// input, every tile position, all 27 rates, every tile height.
#include <gtest/gtest.h>

#include <vector>

#include "conformance/harness/comparators.h"
#include "engine/backend/cpu/ref/hadamard.h"
#include "engine/backend/cuda/kernels_test/exl3_device_layer.h"
#include "engine/backend/exl3_codec.h"

namespace hallmark {
namespace {

constexpr int64_t kK = 256;
constexpr int64_t kN = 256;

// W_q [k, n], widened.
std::vector<float> DecodeAll(const HostExl3& host) {
  std::vector<float> w(static_cast<size_t>(kK * kN));
  const Exl3Rate rate{static_cast<Codebook>(host.rate.codebook), host.rate.k2};
  std::vector<uint16_t> words(static_cast<size_t>(TileWords(rate.k2)));
  for (int64_t tile = 0; tile < kK / 16 * (kN / 16); ++tile) {
    for (size_t i = 0; i < words.size(); ++i) {
      const uint32_t pair = host.words[static_cast<size_t>(tile) * words.size() / 2 + i / 2];
      words[i] = static_cast<uint16_t>(i % 2 == 0 ? pair : pair >> 16);
    }
    uint16_t values[kTileWeights];
    DecodeTile(words.data(), rate, values);
    const int64_t row = tile / (kN / 16) * 16;
    const int64_t column = tile % (kN / 16) * 16;
    for (int i = 0; i < kTileWeights; ++i) {
      w[static_cast<size_t>((row + i / 16) * kN + column + i % 16)] = HalfToFloat(values[i]);
    }
  }
  return w;
}

std::vector<uint16_t> UnitRows() {
  std::vector<uint16_t> xh(static_cast<size_t>(kK * kK), 0);
  for (int64_t row = 0; row < kK; ++row) xh[RotatedIndex(row, row, kK)] = FloatToHalf(1.0f);
  return xh;
}

class Exl3DecodeGpu : public testing::TestWithParam<int> {};

TEST_P(Exl3DecodeGpu, EveryWeightOfEveryRate) {
  const int tile_rows = GetParam();
  const DeviceArray<uint16_t> xh(UnitRows());
  size_t rates = 0;
  for (const Exl3Rate& rate : AllExl3Rates()) {
    const HostExl3 host({static_cast<int>(rate.codebook), rate.k2}, kK, kN, rate.k2 == 8,
                        21 + rates);
    SCOPED_TRACE(testing::Message() << "codebook " << host.rate.codebook << ", k2 " << rate.k2);
    const DeviceExl3 device(host);
    const DeviceArray<float> y(static_cast<size_t>(kK * kN));
    const Exl3Part part = MakeExl3Part(device.layer(), xh.data(), 0, kN, y.data(), kN);
    const DeviceWorkspace workspace({&part, 1}, kK, tile_rows);
    CheckCuda(LaunchExl3Linear(device.rate(), {&part, 1}, kK, workspace.get(), nullptr, tile_rows),
              "LaunchExl3Linear");
    std::vector<float> expected = DecodeAll(host);
    std::vector<float> svh;
    for (const uint16_t half : host.svh) svh.push_back(HalfToFloat(half));
    for (int64_t row = 0; row < kK; ++row) {
      for (int64_t block = 0; block < kN; block += 128) {
        float* at = expected.data() + row * kN + block;
        RefRotateOutput(at, svh.data() + block,
                        host.bias.empty() ? nullptr : host.bias.data() + block, 128, at);
      }
    }
    const std::vector<float> found = y.Download();
    const BitComparison bits = CompareBits<float>(expected, found);
    ASSERT_TRUE(bits.Passed()) << bits.ToString();
    EXPECT_TRUE(workspace.CountersAreZero());
    ++rates;
  }
  EXPECT_EQ(rates, 27u);
}

INSTANTIATE_TEST_SUITE_P(TileRows, Exl3DecodeGpu, testing::ValuesIn(kExl3TileRows));

}  // namespace
}  // namespace hallmark
