// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/affine_linear.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "engine/backend/cpu/simd/affine_loops.h"
#include "engine/backend/cpu/widen.h"
#include "engine/base/blocked_sum.h"
#include "engine/base/check.h"

namespace hallmark {
namespace {

constexpr int64_t kLanes = 16;  // outputs of one AffineBlock
constexpr int64_t kStripLanes = kColumnStrip / kLanes;
// Rows that share one decode; bounds the scratch, reaches no result.
constexpr int64_t kRowsTogether = 64;

AddAffineLoop LoopOf(CpuTier tier) {
#if defined(__x86_64__)
  if (tier >= CpuTier::kAvx512) return &AddAffineAvx512;
  if (tier == CpuTier::kAvx2) return &AddAffineAvx2;
#endif
  (void)tier;
  return &AddAffineScalar;
}

class AffineCpuLinear : public CpuLinear {
 public:
  static Result<std::unique_ptr<CpuLinear>> Load(const LinearSource& source, CpuTier tier) {
    const auto& affine = std::get<AffineLinear>(source.weights);
    CHECK(source.in_features == affine.k && source.out_features == affine.n);
    CHECK(affine.k % kAffineGroup == 0);
    auto linear = std::unique_ptr<AffineCpuLinear>(new AffineCpuLinear);
    linear->in_features = affine.k;
    linear->out_features = affine.n;
    linear->groups_ = affine.k / kAffineGroup;
    linear->blocks_ = (affine.n + kLanes - 1) / kLanes;
    linear->add_ = LoopOf(tier);
    const size_t count = static_cast<size_t>(linear->blocks_ * linear->groups_);
    linear->data_.reset(new (std::nothrow) AffineBlock[count]());
    if (linear->data_ == nullptr) {
      return Fail(Code::kResource,
                  "no memory for " + std::to_string(count * sizeof(AffineBlock)) + " bytes");
    }
    TRY(linear->Pack(affine));
    return std::unique_ptr<CpuLinear>(std::move(linear));
  }

  size_t bytes() const override {
    return static_cast<size_t>(blocks_ * groups_) * sizeof(AffineBlock);
  }

  Status RunColumns(std::span<const ColumnSpan> spans, ConstRows x, Rows y,
                    ThreadPool& pool) const override {
    const std::vector<ColumnStrip> strips = StripsOf(spans, out_features);
    CHECK(x.cols == in_features && y.cols == WidthOf(spans) && x.rows == y.rows);
    for (int64_t first = 0; first < x.rows; first += kRowsTogether) {
      const int64_t rows = std::min(kRowsTogether, x.rows - first);
      TRY(pool.Reserve(static_cast<size_t>(rows * groups_) * sizeof(float),
                       static_cast<size_t>(rows * kLanes) * sizeof(float)));
      const float* in = x.data + first * x.cols;
      float* sums = reinterpret_cast<float*>(pool.shared_scratch());
      for (int64_t i = 0; i < rows * groups_; ++i) {
        const float* group = in + i * kAffineGroup;
        sums[i] = BlockedSum(kAffineGroup, [group](int64_t j) { return group[j]; });
      }
      float* out = y.data + first * y.cols;
      pool.ParallelFor(static_cast<int64_t>(strips.size()), [&](int64_t i, int member) {
        const ColumnStrip& strip = strips[static_cast<size_t>(i)];
        float* acc = reinterpret_cast<float*>(pool.own_scratch(member));
        for (int64_t lane = 0; lane * kLanes < strip.count; ++lane) {
          const int64_t columns = std::min(kLanes, strip.count - lane * kLanes);
          std::fill_n(acc, rows * kLanes, 0.0f);
          const AffineBlock* block = data_.get() + (strip.strip * kStripLanes + lane) * groups_;
          for (int64_t g = 0; g < groups_; ++g) {
            add_(block[g], in + g * kAffineGroup, in_features, sums + g, groups_, rows, acc);
          }
          for (int64_t row = 0; row < rows; ++row) {
            std::copy_n(acc + row * kLanes, columns,
                        out + row * y.cols + strip.out + lane * kLanes);
          }
        }
      });
    }
    return {};
  }

 private:
  AffineCpuLinear() = default;

  // Outputs past the last keep zeros.
  Status Pack(const AffineLinear& affine) {
    std::vector<float> scales(static_cast<size_t>(groups_));
    std::vector<float> biases(static_cast<size_t>(groups_));
    for (int64_t c = 0; c < affine.n; ++c) {
      TRY(WidenToFloat(affine.scales, c * groups_, groups_, scales.data()));
      TRY(WidenToFloat(affine.biases, c * groups_, groups_, biases.data()));
      const std::byte* words = affine.weight.bytes.data() + c * (affine.k / 2);
      for (int64_t g = 0; g < groups_; ++g) {
        AffineBlock& block = data_[static_cast<size_t>(c / kLanes * groups_ + g)];
        const int64_t lane = c % kLanes;
        for (int64_t m = 0; m < 8; ++m) {
          std::memcpy(&block.words[m][lane], words + (8 * g + m) * 4, 4);
        }
        block.scales[lane] = scales[static_cast<size_t>(g)];
        block.biases[lane] = biases[static_cast<size_t>(g)];
      }
    }
    return {};
  }

  int64_t groups_ = 0;
  int64_t blocks_ = 0;
  AddAffineLoop add_ = nullptr;
  std::unique_ptr<AffineBlock[]> data_;  // [blocks][groups]
};

}  // namespace

Result<std::unique_ptr<CpuLinear>> LoadAffineLinear(const LinearSource& source, CpuTier tier) {
  return AffineCpuLinear::Load(source, tier);
}

}  // namespace hallmark
