// SPDX-License-Identifier: Apache-2.0
// The convolution against its scalar definition, bit for bit.
#include <gtest/gtest.h>

#include "engine/backend/cpu/ref/pointwise.h"
#include "engine/backend/cuda/kernels_test/device_array.h"
#include "engine/backend/cuda/kernels_test/float_data.h"
#include "kernels/mixers/conv.h"

namespace hallmark {
namespace {

void ExpectConv(int64_t rows, int64_t channels, int taps) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << channels << " channels, " << taps);
  const std::vector<float> x = HardFloats(rows * channels, rows, LargeFor(rows));
  const std::vector<float> weight = RandomFloats(channels * taps, 2);
  const std::vector<float> window = HardFloats((taps - 1) * channels, 3);
  std::vector<float> expected(x.size()), expected_window(window.size());
  RefConvSilu(x.data(), rows, channels, weight.data(), taps, window.data(), expected_window.data(),
              expected.data());
  const DeviceArray<float> in(x), w(weight), before(window), after(window.size()), out(x.size());
  ASSERT_EQ(LaunchConvSilu(in.data(), rows, channels, w.data(), taps, before.data(), after.data(),
                           out.data(), nullptr),
            cudaSuccess);
  ASSERT_EQ(BitDifference(expected, out.Download()), "");
  ASSERT_EQ(BitDifference(expected_window, after.Download()), "");
  ASSERT_EQ(BitDifference(window, before.Download()), "");
  // Nothing kept, then the window replaced in place.
  const DeviceArray<float> again(x.size()), in_place(x.size());
  ASSERT_EQ(LaunchConvSilu(in.data(), rows, channels, w.data(), taps, before.data(), nullptr,
                           again.data(), nullptr),
            cudaSuccess);
  ASSERT_EQ(BitDifference(expected, again.Download()), "");
  ASSERT_EQ(BitDifference(window, before.Download()), "");
  ASSERT_EQ(LaunchConvSilu(in.data(), rows, channels, w.data(), taps, before.data(), before.data(),
                           in_place.data(), nullptr),
            cudaSuccess);
  ASSERT_EQ(BitDifference(expected, in_place.Download()), "");
  ASSERT_EQ(BitDifference(expected_window, before.Download()), "");
}

TEST(ConvGpu, HasTheBitsOfTheDefinition) {
  for (const int64_t rows : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 127, 128}) {
    ExpectConv(rows, 300, 4);
  }
  for (const int taps : {2, 3, 4, 5, 6, 7, 8}) {
    for (const int64_t rows : {1, 6, 17}) ExpectConv(rows, 129, taps);
  }
  for (const int64_t rows : {1, 8, 33}) ExpectConv(rows, 10240, 4);
}

// Clauses: row-invariance, chunked-equals-whole.
TEST(ConvGpu, AnyCutGivesTheSameRows) {
  constexpr int64_t kRows = 50, kChannels = 200;
  constexpr int kTaps = 4;
  const std::vector<float> x = HardFloats(kRows * kChannels, 1);
  const std::vector<float> window = RandomFloats((kTaps - 1) * kChannels, 3);
  const DeviceArray<float> in(x), w(RandomFloats(kChannels * kTaps, 2)), whole(x.size());
  const DeviceArray<float> first(window);
  ASSERT_EQ(LaunchConvSilu(in.data(), kRows, kChannels, w.data(), kTaps, first.data(), first.data(),
                           whole.data(), nullptr),
            cudaSuccess);
  for (const int64_t cut : {1, 2, 3, 17}) {
    const DeviceArray<float> kept(window), parts(x.size());
    for (int64_t row = 0; row < kRows; row += cut) {
      const int64_t rows = std::min(cut, kRows - row);
      ASSERT_EQ(LaunchConvSilu(in.data() + row * kChannels, rows, kChannels, w.data(), kTaps,
                               kept.data(), kept.data(), parts.data() + row * kChannels, nullptr),
                cudaSuccess);
    }
    ASSERT_EQ(BitDifference(whole.Download(), parts.Download()), "");
    ASSERT_EQ(BitDifference(first.Download(), kept.Download()), "");
  }
}

TEST(ConvGpu, NoRowsKeepTheWindow) {
  const std::vector<float> window = HardFloats(3 * 70, 3);
  const DeviceArray<float> before(window), after(window.size());
  ASSERT_EQ(
      LaunchConvSilu(nullptr, 0, 70, nullptr, 4, before.data(), after.data(), nullptr, nullptr),
      cudaSuccess);
  ASSERT_EQ(BitDifference(window, after.Download()), "");
  EXPECT_EQ(LaunchConvSilu(nullptr, 1, 70, nullptr, 9, nullptr, nullptr, nullptr, nullptr),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace hallmark
