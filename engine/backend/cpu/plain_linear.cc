// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/plain_linear.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/cpu/panels.h"
#include "engine/backend/cpu/widen.h"
#include "engine/base/check.h"

namespace hallmark {
namespace {

Result<PlainType> TypeOf(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kBF16:
      return PlainType::kBf16;
    case DType::kF16:
      return PlainType::kF16;
    case DType::kF32:
      return PlainType::kF32;
    default:
      return Fail(
          Code::kUnsupported,
          "has type " + std::string(DTypeName(tensor.dtype)) + ", expected BF16, F16 or F32",
          tensor.where());
  }
}

class PlainCpuLinear : public CpuLinear {
 public:
  static Result<std::unique_ptr<CpuLinear>> Load(const LinearSource& source, CpuTier tier) {
    const PlainLinear& plain = std::get<PlainLinear>(source.weights);
    CHECK(source.in_features == plain.k && source.out_features == plain.n);
    CHECK(plain.weight.elements() == plain.k * plain.n);
    const PlainType type = TRY(TypeOf(plain.weight));
    const LinearLoops& loops = LinearLoopsOf(tier);
    const size_t size = static_cast<size_t>(DTypeSize(plain.weight.dtype));
    auto linear = std::unique_ptr<PlainCpuLinear>(new PlainCpuLinear);
    linear->in_features = plain.k;
    linear->out_features = plain.n;
    if (plain.bias) {
      CHECK(plain.bias->elements() == plain.n);
      linear->bias_.resize(static_cast<size_t>(plain.n));
      TRY(WidenToFloat(*plain.bias, 0, plain.n, linear->bias_.data()));
    }
    linear->panels_ = TRY(Panels::Make(
        tier, plain.k, plain.n,
        static_cast<size_t>(kPanelBlock) * static_cast<size_t>(loops.panel_columns) * size,
        loops.plain_decoder(type), loops.add_rounded));
    linear->Pack(plain, size);
    return std::unique_ptr<CpuLinear>(std::move(linear));
  }

  size_t bytes() const override { return panels_.bytes() + sizeof(float) * bias_.size(); }

  Status RunColumns(std::span<const ColumnSpan> spans, ConstRows x, Rows y,
                    ThreadPool& pool) const override {
    const std::vector<ColumnStrip> strips = StripsOf(spans, out_features);
    CHECK(x.cols == in_features && y.cols == WidthOf(spans) && x.rows == y.rows);
    for (int64_t first = 0; first < x.rows; first += kRowGroup) {
      const int64_t rows = std::min(kRowGroup, x.rows - first);
      TRY(panels_.Reserve(rows, pool));
      CopyInputs(x.data + first * x.cols, rows, Panels::Inputs(pool));
      float* out = y.data + first * y.cols;
      pool.ParallelFor(static_cast<int64_t>(strips.size()), [&](int64_t i, int member) {
        const ColumnStrip& strip = strips[static_cast<size_t>(i)];
        float* sum = Panels::SumScratch(pool, member);
        panels_.Sum(Panels::Inputs(pool), rows, strip.strip, Panels::PanelScratch(pool, member),
                    sum);
        CopyOutputs(sum, rows, strip, {out, rows, y.cols});
      });
    }
    return {};
  }

 private:
  PlainCpuLinear() = default;

  // W [n, k] -> panels [128 inputs, columns], padded by zeros.
  void Pack(const PlainLinear& plain, size_t size) {
    const int64_t columns = panels_.loops().panel_columns;
    const std::byte* weight = plain.weight.bytes.data();
    for (int64_t panel = 0; panel < panels_.panels(); ++panel) {
      for (int64_t block = 0; block < panels_.blocks(); ++block) {
        uint8_t* out = panels_.at(block, panel);
        for (int64_t i = block * kPanelBlock; i < (block + 1) * kPanelBlock; ++i) {
          for (int64_t c = panel * columns; c < (panel + 1) * columns; ++c) {
            if (i < plain.k && c < plain.n) {
              std::memcpy(out, weight + static_cast<size_t>(c * plain.k + i) * size, size);
            } else {
              std::memset(out, 0, size);
            }
            out += size;
          }
        }
      }
    }
  }

  // inputs [block][rows, 128] <- x [rows, in_features], padded by zeros.
  void CopyInputs(const float* x, int64_t rows, float* inputs) const {
    for (int64_t block = 0; block < panels_.blocks(); ++block) {
      const int64_t start = block * kPanelBlock;
      const int64_t count = std::min(kPanelBlock, in_features - start);
      for (int64_t row = 0; row < rows; ++row) {
        std::copy_n(x + row * in_features + start, count, inputs);
        std::fill(inputs + count, inputs + kPanelBlock, 0.0f);
        inputs += kPanelBlock;
      }
    }
  }

  void CopyOutputs(const float* sum, int64_t rows, const ColumnStrip& strip, Rows y) const {
    const int64_t start = strip.strip * kPanelBlock;
    for (int64_t row = 0; row < rows; ++row) {
      float* out = y.data + row * y.cols + strip.out;
      for (int64_t c = 0; c < strip.count; ++c) {
        const float value = sum[row * kPanelBlock + c];
        out[c] = bias_.empty() ? value : value + bias_[static_cast<size_t>(start + c)];
      }
    }
  }

  Panels panels_;
  std::vector<float> bias_;  // [n] or empty
};

}  // namespace

Result<std::unique_ptr<CpuLinear>> LoadPlainLinear(const LinearSource& source, CpuTier tier) {
  return PlainCpuLinear::Load(source, tier);
}

}  // namespace hallmark
