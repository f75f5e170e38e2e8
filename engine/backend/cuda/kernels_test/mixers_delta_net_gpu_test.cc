// SPDX-License-Identifier: Apache-2.0
// The delta rule and its norm against their scalar definitions, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/backend/cpu/ref/delta_net.h"
#include "engine/backend/cuda/kernels_test/device_array.h"
#include "engine/backend/cuda/kernels_test/float_data.h"
#include "kernels/mixers/delta_net.h"

namespace hallmark {
namespace {

constexpr int64_t kDim = kDeltaNetHeadDim;

// Inputs of a call and, run through the definition, its results.
struct DeltaCase {
  DeltaCase(DeltaNetHeads heads, int64_t rows)
      : heads(heads),
        rows(rows),
        qkv_cols((2 * heads.key_heads + heads.value_heads) * kDim),
        out_cols(heads.value_heads * kDim),
        qkv(HardFloats(rows * qkv_cols, 1)),
        a(Spread(rows * heads.value_heads, 2)),
        b(Spread(rows * heads.value_heads, 3)),
        a_log(RandomFloats(heads.value_heads, 4)),
        dt_bias(RandomFloats(heads.value_heads, 5)),
        state(HardFloats(heads.value_heads * kDim * kDim, 6)) {}

  // Gates from shut to open: softplus and sigmoid at both ends.
  static std::vector<float> Spread(int64_t count, uint64_t seed) {
    std::vector<float> values = RandomFloats(count, seed);
    for (size_t i = 0; i < values.size(); ++i) values[i] *= i % 5 == 0 ? 90.0f : 4.0f;
    return values;
  }

  void Reference(std::vector<float>* out, std::vector<float>* after) const {
    out->resize(static_cast<size_t>(rows * out_cols));
    *after = state;
    std::vector<float> q(kDim), k(kDim);
    const float q_scale = 1.0f / std::sqrt(static_cast<float>(kDim));
    for (int64_t head = 0; head < heads.value_heads; ++head) {
      const int64_t key_head = head / (heads.value_heads / heads.key_heads);
      for (int64_t row = 0; row < rows; ++row) {
        const float* x = qkv.data() + row * qkv_cols;
        RefL2Norm(x + key_head * kDim, kDim, q_scale, q.data());
        RefL2Norm(x + (heads.key_heads + key_head) * kDim, kDim, 1.0f, k.data());
        const int64_t at = row * heads.value_heads + head;
        RefDeltaNetStep(q.data(), k.data(), x + (2 * heads.key_heads + head) * kDim,
                        RefDeltaNetGate(a[at], b[at], a_log[head], dt_bias[head]), kDim, kDim,
                        after->data() + head * kDim * kDim,
                        out->data() + row * out_cols + head * kDim);
      }
    }
  }

  DeltaNetHeads heads;
  int64_t rows, qkv_cols, out_cols;
  std::vector<float> qkv, a, b, a_log, dt_bias, state;
};

// The inputs on the device, to run any rows of.
struct DeviceCase {
  explicit DeviceCase(const DeltaCase& host)
      : host(host), qkv(host.qkv), a(host.a), b(host.b), a_log(host.a_log), dt_bias(host.dt_bias) {}

  void Run(int64_t first, int64_t rows, const float* before, float* after, float* out) const {
    const DeviceArray<float> scratch(static_cast<size_t>(DeltaNetScratchFloats(host.heads, rows)));
    const DeltaNetInputs inputs{
        qkv.data() + first * host.qkv_cols, a.data() + first * host.heads.value_heads,
        b.data() + first * host.heads.value_heads, a_log.data(), dt_bias.data()};
    ASSERT_EQ(LaunchDeltaNet(host.heads, inputs, rows, before, after, scratch.data(),
                             out + first * host.out_cols, nullptr),
              cudaSuccess);
    scratch.Download();  // waits, and checks the bands
  }

  const DeltaCase& host;
  DeviceArray<float> qkv, a, b, a_log, dt_bias;
};

void ExpectDelta(DeltaNetHeads heads, int64_t rows) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << heads.key_heads << " and "
                                  << heads.value_heads << " heads");
  const DeltaCase host(heads, rows);
  std::vector<float> expected, expected_state;
  host.Reference(&expected, &expected_state);
  const DeviceCase device(host);
  const DeviceArray<float> before(host.state), after(host.state.size()), out(expected.size());
  device.Run(0, rows, before.data(), after.data(), out.data());
  ASSERT_EQ(BitDifference(expected, out.Download()), "");
  ASSERT_EQ(BitDifference(expected_state, after.Download()), "");
  ASSERT_EQ(BitDifference(host.state, before.Download()), "");
  const DeviceArray<float> again(expected.size()), in_place(expected.size());
  device.Run(0, rows, before.data(), nullptr, again.data());
  ASSERT_EQ(BitDifference(expected, again.Download()), "");
  ASSERT_EQ(BitDifference(host.state, before.Download()), "");
  device.Run(0, rows, before.data(), before.data(), in_place.data());
  ASSERT_EQ(BitDifference(expected, in_place.Download()), "");
  ASSERT_EQ(BitDifference(expected_state, before.Download()), "");
}

TEST(DeltaNetGpu, HasTheBitsOfTheDefinition) {
  for (const int64_t rows : {1, 2, 3, 7, 8, 9, 16, 17, 31, 64, 127, 128}) {
    ExpectDelta({.key_heads = 1, .value_heads = 2}, rows);
  }
  ExpectDelta({.key_heads = 3, .value_heads = 3}, 5);
  ExpectDelta({.key_heads = 2, .value_heads = 6}, 4);
  for (const int64_t rows : {1, 8}) ExpectDelta({.key_heads = 16, .value_heads = 48}, rows);
}

// Clauses: row-invariance, chunked-equals-whole.
TEST(DeltaNetGpu, AnyCutGivesTheSameRows) {
  const DeltaCase host({.key_heads = 2, .value_heads = 4}, 37);
  const DeviceCase device(host);
  const DeviceArray<float> state(host.state);
  const DeviceArray<float> whole(static_cast<size_t>(host.rows * host.out_cols));
  device.Run(0, host.rows, state.data(), state.data(), whole.data());
  for (const int64_t cut : {1, 5, 16}) {
    const DeviceArray<float> kept(host.state), parts(whole.size());
    for (int64_t row = 0; row < host.rows; row += cut) {
      device.Run(row, std::min(cut, host.rows - row), kept.data(), kept.data(), parts.data());
    }
    ASSERT_EQ(BitDifference(whole.Download(), parts.Download()), "");
    ASSERT_EQ(BitDifference(state.Download(), kept.Download()), "");
  }
}

TEST(DeltaNetGpu, NoRowsKeepTheState) {
  const std::vector<float> state = HardFloats(2 * kDim * kDim, 3);
  const DeviceArray<float> before(state), after(state.size());
  ASSERT_EQ(LaunchDeltaNet({1, 2}, {}, 0, before.data(), after.data(), nullptr, nullptr, nullptr),
            cudaSuccess);
  ASSERT_EQ(BitDifference(state, after.Download()), "");
  EXPECT_EQ(LaunchDeltaNet({2, 3}, {}, 0, before.data(), after.data(), nullptr, nullptr, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(LaunchDeltaNet({1, 2}, {}, 1, before.data() + 1, nullptr, nullptr, nullptr, nullptr),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace hallmark
