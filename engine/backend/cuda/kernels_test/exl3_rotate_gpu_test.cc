// SPDX-License-Identifier: Apache-2.0
// The input rotation against its scalar definition: same fp16 bits, whatever the row count.
#include <gtest/gtest.h>

#include <vector>

#include "conformance/harness/comparators.h"
#include "engine/backend/cpu/ref/hadamard.h"
#include "engine/backend/cuda/kernels_test/exl3_device_layer.h"

namespace hallmark {
namespace {

std::vector<float> Widen(std::span<const uint16_t> halves) {
  std::vector<float> out;
  for (const uint16_t half : halves) out.push_back(HalfToFloat(half));
  return out;
}

void ExpectRotated(int64_t rows, int64_t in_features, int64_t k) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << in_features << " in " << k);
  const HostExl3 host({2, 6}, k, 128, false, 11);
  const DeviceExl3 device(host);
  SplitMix64 random(rows + in_features);
  std::vector<float> x(static_cast<size_t>(rows * in_features));
  for (float& value : x) value = random.NextNormal();
  x[0] = -0.0f;
  const RotatedRows rotated(device, x, rows, in_features);
  const std::vector<uint16_t> found = rotated.Download();
  const std::vector<float> suh = Widen(host.suh);
  std::vector<float> xh(static_cast<size_t>(k));
  std::vector<uint16_t> expected(found.size(), 0);  // padding rows are zero
  for (int64_t row = 0; row < rows; ++row) {
    ASSERT_TRUE(
        RefRotateInput(x.data() + row * in_features, in_features, suh.data(), k, xh.data()));
    for (int64_t i = 0; i < k; ++i) expected[RotatedIndex(row, i, k)] = FloatToHalf(xh[i]);
  }
  const BitComparison bits = CompareBits<uint16_t>(expected, found);
  EXPECT_TRUE(bits.Passed()) << bits.ToString();
  EXPECT_EQ(rotated.overflow(), 0);
}

TEST(Exl3RotateGpu, HasTheBitsOfTheDefinition) {
  for (const int64_t rows : {1, 2, 7, 8, 9, 17, 128}) ExpectRotated(rows, 384, 384);
  ExpectRotated(3, 300, 384);  // extended by zeros
  ExpectRotated(2, 17408, 17408);
  ExpectRotated(131, 5120, 5120);
}

TEST(Exl3RotateGpu, ReportsAnInputThatFp16CannotHold) {
  const HostExl3 host({2, 6}, 256, 128, false, 12);
  const DeviceExl3 device(host);
  std::vector<float> x(3 * 256, 1.0f);
  EXPECT_EQ(RotatedRows(device, x, 3, 256).overflow(), 0);
  x[2 * 256 + 200] = 1e9f;
  EXPECT_EQ(RotatedRows(device, x, 3, 256).overflow(), 7);
  x[2 * 256 + 200] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(RotatedRows(device, x, 3, 256).overflow(), 7);
}

}  // namespace
}  // namespace hallmark
