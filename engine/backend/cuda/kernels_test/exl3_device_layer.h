// SPDX-License-Identifier: Apache-2.0
// DeviceExl3: one EXL3 layer of a test in device memory, with what a launch of it needs. Trellis
// words may be any bits: every pattern is a valid tile.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_EXL3_DEVICE_LAYER_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_EXL3_DEVICE_LAYER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/backend/cuda/kernels_test/device_array.h"
#include "engine/base/float_types.h"
#include "engine/base/random.h"
#include "kernels/exl3/exl3_linear.h"

namespace hallmark {

// Host side of a layer: suh and svh of magnitudes around one with signs, a bias if asked for.
struct HostExl3 {
  HostExl3(Exl3KernelRate rate, int64_t k, int64_t n, bool with_bias, uint64_t seed)
      : rate(rate), k(k), n(n) {
    SplitMix64 random(seed);
    words.resize(static_cast<size_t>(k / 16 * (n / 16) * 4 * rate.k2));
    for (uint32_t& word : words) word = static_cast<uint32_t>(random.Next());
    const auto scale = [&] {
      const float magnitude = 0.5f + static_cast<float>(random.Next() % 1024) / 1024.0f;
      return FloatToHalf(random.Next() % 2 == 0 ? magnitude : -magnitude);
    };
    for (int64_t i = 0; i < k; ++i) suh.push_back(scale());
    for (int64_t i = 0; i < n; ++i) svh.push_back(scale());
    if (with_bias) {
      for (int64_t i = 0; i < n; ++i) bias.push_back(HalfToFloat(scale()));
    }
  }

  Exl3KernelRate rate;
  int64_t k;
  int64_t n;
  std::vector<uint32_t> words;
  std::vector<uint16_t> suh, svh;
  std::vector<float> bias;
};

class DeviceExl3 {
 public:
  explicit DeviceExl3(const HostExl3& host)
      : rate_(host.rate), words_(host.words), suh_(host.suh), svh_(host.svh) {
    if (!host.bias.empty()) bias_.emplace(host.bias);
    layer_ = {words_.data(), svh_.data(), bias_ ? bias_->data() : nullptr, host.k, host.n};
  }

  Exl3KernelRate rate() const { return rate_; }
  const Exl3DeviceLayer& layer() const { return layer_; }
  const uint16_t* suh() const { return suh_.data(); }

 private:
  Exl3KernelRate rate_;
  DeviceArray<uint32_t> words_;
  DeviceArray<uint16_t> suh_, svh_;
  std::optional<DeviceArray<float>> bias_;
  Exl3DeviceLayer layer_;
};

// A workspace for a launch of `parts`: partial sums NaN, counters zero.
class DeviceWorkspace {
 public:
  DeviceWorkspace(std::span<const Exl3Part> parts, int64_t rows, int tile_rows)
      : partials_(Exl3PartialsBytes(parts, rows, tile_rows) / sizeof(float) + 1),
        counters_(std::vector<int32_t>(Exl3CounterCount(parts, rows, tile_rows) + 1, 0)) {}
  Exl3Workspace get() const { return {partials_.data(), counters_.data()}; }
  bool CountersAreZero() const {
    const std::vector<int32_t> counters = counters_.Download();
    return std::count(counters.begin(), counters.end(), 0) ==
           static_cast<std::ptrdiff_t>(counters.size());
  }

 private:
  DeviceArray<float> partials_;
  DeviceArray<int32_t> counters_;
};

// Rotated inputs [rows, k] of x [rows, in_features], for one layer.
class RotatedRows {
 public:
  RotatedRows(const DeviceExl3& layer, std::span<const float> x, int64_t rows, int64_t in_features)
      : xh_(Exl3RotatedBytes(rows, layer.layer().k) / 2), overflow_(std::vector<int32_t>{0}) {
    const DeviceArray<float> input(x);
    CheckCuda(LaunchExl3Rotate(input.data(), rows, in_features, layer.suh(), layer.layer().k,
                               xh_.data(), 7, overflow_.data(), nullptr),
              "LaunchExl3Rotate");
    CheckCuda(cudaDeviceSynchronize(), "rotate");
  }
  const void* data() const { return xh_.data(); }
  std::vector<uint16_t> Download() const { return xh_.Download(); }
  int32_t overflow() const { return overflow_.Download()[0]; }

 private:
  DeviceArray<uint16_t> xh_;
  DeviceArray<int32_t> overflow_;
};

// The index of element (row, input) in rotated rows.
inline size_t RotatedIndex(int64_t row, int64_t input, int64_t k) {
  const int64_t in_tile = input % 16;
  const int64_t lane = row % 8 * 4 + in_tile % 8 / 2;
  return static_cast<size_t>(
      (((row / 8 * (k / 16) + input / 16) * 32 + lane) * 2 + in_tile / 8) * 2 + in_tile % 2);
}

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_EXL3_DEVICE_LAYER_H_
