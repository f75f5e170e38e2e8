// SPDX-License-Identifier: Apache-2.0
// Clause row-invariance on every linear of the 27B: K3, K4 and K6 of each codebook, decode rows,
// verify windows and prompts past the tallest tile. Inputs are given rotated: random fp16 rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "engine/backend/cuda/kernels_test/exl3_device_layer.h"

namespace hallmark {
namespace {

struct Shape {
  int64_t k, n;
};
constexpr Shape kShapes[] = {{5120, 17408}, {17408, 5120}, {5120, 10240}, {5120, 6144},
                             {6144, 5120},  {5120, 12288}, {5120, 1024}};
constexpr int64_t kMostRows = 2048;

// The device compares: a 2,048-row result of 17,408 columns is 143 MB.
class Exl3ShapesGpu : public testing::TestWithParam<Shape> {};

TEST_P(Exl3ShapesGpu, EveryRowCountGivesTheRowsAlone) {
  const auto [k, n] = GetParam();
  SplitMix64 random(5);
  std::vector<uint16_t> halves(Exl3RotatedBytes(kMostRows, k) / 2);
  for (uint16_t& half : halves) half = FloatToHalf(random.NextSigned());
  const DeviceArray<uint16_t> xh(halves);
  for (const int codebook : {0, 1, 2}) {
    for (const int k2 : {6, 8, 12}) {
      SCOPED_TRACE(testing::Message() << "codebook " << codebook << ", k2 " << k2);
      const HostExl3 host({codebook, k2}, k, n, false, 17);
      const DeviceExl3 device(host);
      // Rows of groups of 8, one group at a time by the lowest tile: the reference.
      const DeviceArray<float> alone(static_cast<size_t>(kMostRows * n));
      const Exl3Part all = MakeExl3Part(device.layer(), xh.data(), 0, n, alone.data(), n);
      const DeviceWorkspace one({&all, 1}, 8, 8);
      for (int64_t row = 0; row < kMostRows; row += 8) {
        const Exl3Part part =
            MakeExl3Part(device.layer(), xh.data() + row * k, 0, n, alone.data() + row * n, n);
        CheckCuda(LaunchExl3Linear(host.rate, {&part, 1}, 8, one.get(), nullptr, 8), "reference");
      }
      const std::vector<float> expected = alone.Download();
      size_t compared = 0;
      for (const int64_t rows : {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,  11,  12,  13,  14,
                                 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 2048}) {
        const DeviceArray<float> y(static_cast<size_t>(rows * n));
        const Exl3Part part = MakeExl3Part(device.layer(), xh.data(), 0, n, y.data(), n);
        const DeviceWorkspace workspace({&part, 1}, rows, 0);
        CheckCuda(LaunchExl3Linear(host.rate, {&part, 1}, rows, workspace.get(), nullptr),
                  "linear");
        const std::vector<float> found = y.Download();
        ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
            << rows << " rows";
        compared += found.size();
        if (rows == 17) {
          EXPECT_TRUE(workspace.CountersAreZero());
        }
      }
      ASSERT_GT(compared, 0u);
      for (const float value : std::span(expected).first(static_cast<size_t>(n))) {
        ASSERT_TRUE(std::isfinite(value));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Linears, Exl3ShapesGpu, testing::ValuesIn(kShapes));

}  // namespace
}  // namespace hallmark
