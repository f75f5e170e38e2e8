// SPDX-License-Identifier: Apache-2.0
// Norms of rows against their scalar definitions, bit for bit.
#include <gtest/gtest.h>

#include "engine/backend/cpu/ref/draft.h"
#include "engine/backend/cpu/ref/norm.h"
#include "engine/backend/cuda/kernels_test/device_array.h"
#include "engine/backend/cuda/kernels_test/float_data.h"
#include "kernels/rows/norm.h"

namespace hallmark {
namespace {

constexpr float kEps = 1e-6f;

void ExpectNorms(int64_t rows, int64_t cols, float large) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << cols);
  const std::vector<float> x = HardFloats(rows * cols, 31 * rows + cols, large);
  const std::vector<float> weight = RandomFloats(cols, 7);
  std::vector<float> offset(x.size()), plain(x.size());
  for (int64_t row = 0; row < rows; ++row) {
    RefRmsNorm(x.data() + row * cols, weight.data(), cols, kEps, offset.data() + row * cols);
    RefPlainRmsNorm(x.data() + row * cols, weight.data(), cols, kEps, plain.data() + row * cols);
  }
  const DeviceArray<float> in(x), w(weight), out(x.size());
  ASSERT_EQ(LaunchRmsNorm(in.data(), rows, cols, w.data(), kEps, out.data(), nullptr), cudaSuccess);
  ASSERT_EQ(BitDifference(offset, out.Download()), "");
  ASSERT_EQ(LaunchPlainRmsNorm(in.data(), rows, cols, w.data(), kEps, out.data(), nullptr),
            cudaSuccess);
  ASSERT_EQ(BitDifference(plain, out.Download()), "");
  // In place.
  ASSERT_EQ(LaunchRmsNorm(in.data(), rows, cols, w.data(), kEps, in.data(), nullptr), cudaSuccess);
  ASSERT_EQ(BitDifference(offset, in.Download()), "");
}

TEST(NormGpu, HasTheBitsOfTheDefinition) {
  for (const int64_t rows : {1, 2, 3, 7, 8, 9, 16, 17, 31, 64, 127, 128}) {
    ExpectNorms(rows, 5120, 3.0f);
  }
  for (const int64_t cols : {1, 15, 16, 17, 100, 127, 128, 129, 255, 1000, 4096, 17408}) {
    ExpectNorms(3, cols, 3.0f);
  }
  // More blocks than are summed at once.
  ExpectNorms(2, 256 * 128 + 5, 3.0f);
  ExpectNorms(1, 513 * 128, 3.0f);
}

TEST(NormGpu, TheSumOfTwoRowsHasTheBitsOfAddAndNorm) {
  for (const int64_t rows : {1, 3, 8}) {
    for (const int64_t cols :
         {int64_t{1}, int64_t{100}, int64_t{129}, int64_t{5120}, kMostAddNormCols}) {
      const std::vector<float> x = HardFloats(rows * cols, 11 * rows + cols, 3.0f);
      const std::vector<float> y = HardFloats(rows * cols, 13 * rows + cols, 3.0f);
      const std::vector<float> weight = RandomFloats(cols, 9);
      std::vector<float> sum(x.size()), normed(x.size());
      for (size_t i = 0; i < x.size(); ++i) sum[i] = x[i] + y[i];
      for (int64_t row = 0; row < rows; ++row) {
        RefRmsNorm(sum.data() + row * cols, weight.data(), cols, kEps, normed.data() + row * cols);
      }
      const DeviceArray<float> in(x), other(y), w(weight), out(x.size());
      ASSERT_EQ(LaunchAddRmsNorm(in.data(), other.data(), rows, cols, w.data(), kEps, out.data(),
                                 nullptr),
                cudaSuccess);
      ASSERT_EQ(BitDifference(sum, in.Download()), "") << rows << " rows of " << cols;
      ASSERT_EQ(BitDifference(normed, out.Download()), "") << rows << " rows of " << cols;
    }
  }
  EXPECT_EQ(
      LaunchAddRmsNorm(nullptr, nullptr, 1, kMostAddNormCols + 1, nullptr, kEps, nullptr, nullptr),
      cudaErrorInvalidValue);
}

TEST(NormGpu, LargeValuesOverflowAlike) {
  ExpectNorms(3, 5120, 1e30f);  // the sum of squares is infinite, the row zeros
  ExpectNorms(3, 200, 1e18f);
}

TEST(NormGpu, RefusesShapesItCannotRun) {
  EXPECT_EQ(LaunchRmsNorm(nullptr, 1, 0, nullptr, kEps, nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(LaunchRmsNorm(nullptr, -1, 8, nullptr, kEps, nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(LaunchRmsNorm(nullptr, 0, 8, nullptr, kEps, nullptr, nullptr), cudaSuccess);
}

}  // namespace
}  // namespace hallmark
