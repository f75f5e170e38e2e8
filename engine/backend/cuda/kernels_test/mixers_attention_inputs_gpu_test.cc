// SPDX-License-Identifier: Apache-2.0
// Attention's inputs against the CPU backend, bit for bit: queries, and every byte of the pages.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/backend/cpu/mixer_ops.h"
#include "engine/backend/cuda/kernels_test/attention_data.h"
#include "engine/backend/cuda/kernels_test/float_data.h"
#include "kernels/mixers/attention_inputs.h"

namespace hallmark {
namespace {

struct Case {
  AttentionGeometry geometry;
  KvType type = KvType::kBf16;
  int64_t position = 0;
  int64_t rows = 0;
};

// Frequencies of base 10,000,000.
std::vector<float> Frequencies(int rotary_dim) {
  std::vector<float> inv_freq;
  for (int i = 0; i < rotary_dim / 2; ++i) {
    inv_freq.push_back(static_cast<float>(std::pow(1e7, -2.0 * i / rotary_dim)));
  }
  return inv_freq;
}

void ExpectInputs(const Case& c) {
  const AttentionGeometry& geometry = c.geometry;
  SCOPED_TRACE(testing::Message() << geometry.heads << " heads, " << geometry.kv_heads
                                  << " kv heads of " << geometry.head_dim << ", "
                                  << geometry.rotary_dim << " turned, " << c.rows << " rows at "
                                  << c.position << (c.type == KvType::kBf16 ? " bf16" : " fp8"));
  const int64_t dim = geometry.head_dim;
  const int64_t width = geometry.heads * dim;
  const int64_t kv_width = geometry.kv_heads * dim;
  // Large enough that fp8 saturates, not so large that a square is infinite.
  const std::vector<float> q_gate = HardFloats(c.rows * 2 * width, 1, 1e4f);
  const std::vector<float> k = HardFloats(c.rows * kv_width, 2, 1e4f);
  const std::vector<float> v = HardFloats(c.rows * kv_width, 3, 1e4f);
  const std::vector<float> q_norm = RandomFloats(dim, 4);
  const std::vector<float> k_norm = RandomFloats(dim, 5);
  const std::vector<float> inv_freq = Frequencies(geometry.rotary_dim);

  const HostPages pages(c.type, geometry, c.position + c.rows);
  const DevicePages device_pages(pages, 1);
  std::vector<float> expected(static_cast<size_t>(c.rows * width));
  ThreadPool pool(1);
  CpuAttentionInputs(geometry, {q_norm.data(), k_norm.data(), inv_freq.data()}, c.position,
                     {q_gate.data(), c.rows, 2 * width}, {k.data(), c.rows, kv_width},
                     {v.data(), c.rows, kv_width}, {expected.data(), c.rows, width}, pages.kv(),
                     pool);

  const DeviceArray<float> d_q_gate(q_gate), d_k(k), d_v(v), d_q(expected.size());
  const DeviceArray<float> d_q_norm(q_norm), d_k_norm(k_norm), d_inv_freq(inv_freq);
  const AttentionInputWeights weights = {d_q_norm.data(), d_k_norm.data(), d_inv_freq.data(),
                                         geometry.rotary_dim, geometry.eps};
  ASSERT_EQ(LaunchAttentionInputs(ShapeOf(geometry), FormatOf(c.type), weights,
                                  device_pages.PlaceAt(c.position), c.rows, d_q_gate.data(),
                                  d_k.data(), d_v.data(), d_q.data(), nullptr),
            cudaSuccess);
  ASSERT_EQ(BitDifference(expected, d_q.Download()), "");
  ASSERT_EQ(BitDifference(pages.bytes(), device_pages.Download()), "");
}

TEST(AttentionInputsGpu, HaveTheBitsOfTheCpu) {
  for (const KvType type : {KvType::kBf16, KvType::kFp8E4m3}) {
    for (const int64_t rows : {1, 2, 17, 128}) {
      ExpectInputs({{24, 4, 256, 64, 1e-6f}, type, 250, rows});
    }
    for (const int head_dim : {128, 256, 384}) {
      for (const int rotary_dim : {2, 34, 64, head_dim}) {
        ExpectInputs({{5, 5, head_dim, rotary_dim, 1e-5f}, type, 511, 3});
      }
    }
  }
  ExpectInputs({{2, 1, 128, 32, 1e-6f}, KvType::kFp8E4m3, 262144 - 9, 9});
}

TEST(AttentionInputsGpu, OtherShapesAreRefused) {
  auto launch = [](AttentionShape shape, int rotary_dim, int64_t rows) {
    AttentionInputWeights weights;
    weights.rotary_dim = rotary_dim;
    return LaunchAttentionInputs(shape, KvFormat::kBf16, weights, KvPlace(), rows, nullptr, nullptr,
                                 nullptr, nullptr, nullptr);
  };
  EXPECT_EQ(launch({4, 2, 128}, 64, 0), cudaSuccess);
  EXPECT_EQ(launch({4, 3, 128}, 64, 1), cudaErrorInvalidValue);
  EXPECT_EQ(launch({4, 0, 128}, 64, 1), cudaErrorInvalidValue);
  EXPECT_EQ(launch({4, 2, 192}, 64, 1), cudaErrorInvalidValue);
  EXPECT_EQ(launch({4, 2, 128}, 63, 1), cudaErrorInvalidValue);
  EXPECT_EQ(launch({4, 2, 128}, 130, 1), cudaErrorInvalidValue);
  EXPECT_EQ(launch({4, 2, 128}, 64, -1), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace hallmark
