// SPDX-License-Identifier: Apache-2.0
// Pointwise operations, embedding and copies against their definitions, bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "engine/backend/cpu/ref/draft.h"
#include "engine/backend/cpu/ref/pointwise.h"
#include "engine/backend/cuda/kernels_test/device_array.h"
#include "engine/backend/cuda/kernels_test/float_data.h"
#include "engine/base/float_types.h"
#include "kernels/rows/embed.h"
#include "kernels/rows/pointwise.h"

namespace hallmark {
namespace {

TEST(PointwiseGpu, HasTheBitsOfTheDefinitions) {
  for (const int64_t count : {1, 31, 257, 5120 * 3, 17408 * 9 + 1, (1 << 24) + 77}) {
    SCOPED_TRACE(count);
    const std::vector<float> a = HardFloats(count, count, 1e30f),
                             b = HardFloats(count, count + 9, 1e30f);
    std::vector<float> expected(a.size());
    const DeviceArray<float> x(a), y(b), out(a.size());
    ASSERT_EQ(LaunchSwiGlu(x.data(), y.data(), count, out.data(), nullptr), cudaSuccess);
    RefSwiGlu(a.data(), b.data(), count, expected.data());
    ASSERT_EQ(BitDifference(expected, out.Download()), "");

    ASSERT_EQ(LaunchAdd(out.data(), y.data(), count, nullptr), cudaSuccess);
    for (int64_t i = 0; i < count; ++i) expected[i] += b[i];
    ASSERT_EQ(BitDifference(expected, out.Download()), "");

    ASSERT_EQ(LaunchScale(out.data(), count, 0.3f, nullptr), cudaSuccess);
    for (float& value : expected) value *= 0.3f;
    ASSERT_EQ(BitDifference(expected, out.Download()), "");

    ASSERT_EQ(LaunchSwiGlu(x.data(), y.data(), count, x.data(), nullptr), cudaSuccess);
    RefSwiGlu(a.data(), b.data(), count, expected.data());
    ASSERT_EQ(BitDifference(expected, x.Download()), "");
  }
}

TEST(PointwiseGpu, SiluHasItsBitsOverTheWholeRange) {
  std::vector<float> gate;
  for (float value = -110.0f; value < 110.0f; value += 0.00731f) gate.push_back(value);
  const int64_t count = static_cast<int64_t>(gate.size());
  const std::vector<float> up(gate.size(), 1.0f);
  std::vector<float> expected(gate.size());
  RefSwiGlu(gate.data(), up.data(), count, expected.data());
  const DeviceArray<float> x(gate), y(up), out(gate.size());
  ASSERT_EQ(LaunchSwiGlu(x.data(), y.data(), count, out.data(), nullptr), cudaSuccess);
  ASSERT_EQ(BitDifference(expected, out.Download()), "");
}

int32_t ScaledFirstBad(const std::vector<float>& logits, int64_t rows, int64_t cols,
                       float multiplier, float softcap, bool compare) {
  const DeviceArray<float> x(logits);
  const DeviceArray<int32_t> bad(std::vector<int32_t>{INT32_MAX});
  EXPECT_EQ(LaunchScaleLogits(x.data(), rows, cols, multiplier, softcap, bad.data(), nullptr),
            cudaSuccess);
  if (compare) {
    std::vector<float> expected;
    for (const float value : logits) expected.push_back(RefScaleLogit(value, multiplier, softcap));
    EXPECT_EQ(BitDifference(expected, x.Download()), "");
  }
  return bad.Download()[0];
}

TEST(PointwiseGpu, LogitsAreScaledAndTheFirstBadRowIsNamed) {
  std::vector<float> logits = HardFloats(5 * 1001, 3, 1e20f);
  EXPECT_EQ(ScaledFirstBad(logits, 5, 1001, 12.5f, 0.0f, true), INT32_MAX);
  EXPECT_EQ(ScaledFirstBad(logits, 5, 1001, 12.5f, 30.0f, true), INT32_MAX);
  for (float& value : logits) value = value > 1e10f || value < -1e10f ? 2.0f : value;
  EXPECT_EQ(ScaledFirstBad(logits, 5, 1001, 70.0f, 15.0f, true), INT32_MAX);
  logits[4 * 1001 + 1000] = 1e38f;  // infinite once it is multiplied
  EXPECT_EQ(ScaledFirstBad(logits, 5, 1001, 12.5f, 0.0f, true), 4);
  logits[2 * 1001] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(ScaledFirstBad(logits, 5, 1001, 1.0f, 0.0f, false), 2);
  // A cap makes an infinity finite: it is found before.
  logits[0] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(ScaledFirstBad(logits, 5, 1001, 1.0f, 30.0f, false), 0);
}

template <typename T>
std::vector<T> StoredAs(ElementType type, const std::vector<float>& values) {
  std::vector<T> stored(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (sizeof(T) == 4) {
      stored[i] = values[i];
    } else {
      stored[i] = type == ElementType::kBf16 ? FloatToBf16(values[i]) : FloatToHalf(values[i]);
    }
  }
  return stored;
}

template <typename T>
void ExpectEmbedded(ElementType type, int64_t entries, int64_t cols) {
  SCOPED_TRACE(testing::Message() << "type " << static_cast<int>(type) << ", " << cols);
  const std::vector<T> table = StoredAs<T>(type, HardFloats(entries * cols, cols, 6e4f));
  std::vector<int32_t> ids = {0, static_cast<int32_t>(entries - 1)};
  SplitMix64 random(5);
  for (int i = 0; i < 29; ++i) ids.push_back(static_cast<int32_t>(random.Below(entries)));
  std::vector<float> expected;
  for (const int32_t id : ids) {
    for (int64_t i = id * cols; i < (id + 1) * cols; ++i) {
      if constexpr (sizeof(T) == 4) {
        expected.push_back(table[i]);
      } else {
        expected.push_back(type == ElementType::kBf16 ? Bf16ToFloat(table[i])
                                                      : HalfToFloat(table[i]));
      }
    }
  }
  const DeviceArray<int32_t> device_ids(ids);
  const int64_t rows = static_cast<int64_t>(ids.size());
  const DeviceArray<T> device_table(table);
  const DeviceArray<float> out(expected.size());
  ASSERT_EQ(
      LaunchEmbed(device_table.data(), type, cols, device_ids.data(), rows, out.data(), nullptr),
      cudaSuccess);
  ASSERT_EQ(BitDifference(expected, out.Download()), "");

  void* host = nullptr;
  void* mapped = nullptr;
  CheckCuda(cudaHostAlloc(&host, table.size() * sizeof(T), cudaHostAllocMapped), "cudaHostAlloc");
  std::memcpy(host, table.data(), table.size() * sizeof(T));
  CheckCuda(cudaHostGetDevicePointer(&mapped, host, 0), "cudaHostGetDevicePointer");
  const DeviceArray<float> from_host(expected.size());
  ASSERT_EQ(LaunchEmbed(mapped, type, cols, device_ids.data(), rows, from_host.data(), nullptr),
            cudaSuccess);
  ASSERT_EQ(BitDifference(expected, from_host.Download()), "");
  cudaFreeHost(host);
}

// Clause: mapped-equals-device.
TEST(EmbedGpu, WidensRowsOfDeviceAndMappedTables) {
  for (const int64_t cols : {1, 3, 8, 36, 5120}) {
    ExpectEmbedded<uint16_t>(ElementType::kBf16, 97, cols);
    ExpectEmbedded<uint16_t>(ElementType::kF16, 97, cols);
    ExpectEmbedded<float>(ElementType::kF32, 97, cols);
  }
}

TEST(CopyColumnsGpu, LeavesOtherColumnsAlone) {
  constexpr int64_t kRows = 9, kCols = 301, kColumn = 77, kOutCols = 400;
  const std::vector<float> x = HardFloats(kRows * kCols, 1);
  std::vector<float> out = RandomFloats(kRows * kOutCols, 2);
  const DeviceArray<float> in(x), to(out);
  ASSERT_EQ(LaunchCopyColumns(in.data(), kRows, kCols, kColumn, kOutCols, to.data(), nullptr),
            cudaSuccess);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < kCols; ++c) out[row * kOutCols + kColumn + c] = x[row * kCols + c];
  }
  ASSERT_EQ(BitDifference(out, to.Download()), "");
  EXPECT_EQ(LaunchCopyColumns(in.data(), kRows, kCols, 100, kOutCols, to.data(), nullptr),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace hallmark
