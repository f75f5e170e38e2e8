// SPDX-License-Identifier: Apache-2.0
// EXL3 linears on the GPU: the trellis stays as it is stored, scales are fp16 (packed signs are
// expanded: +-1 is exact), the bias fp32.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/cuda/cuda_linear.h"
#include "engine/base/check.h"
#include "kernels/exl3/exl3_linear.h"
#include "kernels/exl3/exl3_prompt.h"

namespace hallmark {
namespace {

constexpr int kSignsPerWord = 16;

// fp16 [count] from F16 values or from packed sign words.
Result<Buffer> LoadScale(const TensorView& tensor, bool packed, int64_t count,
                         CudaExecution& execution) {
  if (!packed) {
    CHECK(tensor.dtype == DType::kF16 && tensor.elements() == count);
    return LoadStored(tensor, execution);
  }
  CHECK(tensor.elements() * kSignsPerWord == count);
  constexpr uint16_t kOne = 0x3C00;
  constexpr uint16_t kMinusOne = 0xBC00;
  std::vector<uint16_t> scale(static_cast<size_t>(count));
  for (size_t i = 0; i < scale.size(); ++i) {
    uint16_t word;
    std::memcpy(&word, tensor.bytes.data() + i / kSignsPerWord * sizeof(word), sizeof(word));
    scale[i] = ((word >> (i % kSignsPerWord)) & 1) != 0 ? kMinusOne : kOne;
  }
  Buffer buffer = TRY(execution.arena().Allocate(scale.size() * sizeof(uint16_t)));
  TRY(execution.staging().Send(buffer.data(), scale.data(), buffer.bytes()));
  return buffer;
}

class Exl3CudaLinear : public CudaLinear {
 public:
  static Result<std::unique_ptr<CudaLinear>> Load(const LinearSource& source,
                                                  CudaExecution& execution) {
    const Exl3Group& group = std::get<Exl3Group>(source.weights);
    CHECK(source.in_features <= group.k && source.out_features <= group.n);
    auto linear = std::unique_ptr<Exl3CudaLinear>(new Exl3CudaLinear);
    linear->in_features = source.in_features;
    linear->out_features = source.out_features;
    linear->rate_ = {static_cast<int>(group.codebook), group.k2};
    linear->trellis_ = TRY(LoadStored(group.trellis, execution));
    linear->suh_ = TRY(LoadScale(group.input_scale, group.input_packed, group.k, execution));
    linear->svh_ = TRY(LoadScale(group.output_scale, group.output_packed, group.n, execution));
    if (group.bias) linear->bias_ = TRY(LoadWidened(*group.bias, execution));
    linear->layer_ = {static_cast<const uint32_t*>(linear->trellis_.data()),
                      static_cast<const uint16_t*>(linear->svh_.data()), linear->bias_.floats(),
                      group.k, group.n};
    linear->id_ = execution.faults().AddLayer(group.name);
    return std::unique_ptr<CudaLinear>(std::move(linear));
  }

  Status RunColumns(std::span<const ColumnSpan> spans, ConstRows x, Rows y,
                    CudaExecution& execution) const override {
    CHECK(x.cols == in_features && x.rows == y.rows);
    if (x.rows == 0) return {};
    const Exl3CudaLinear* self = this;
    const std::vector<void*> xh = TRY(Rotate({&self, 1}, x, execution));
    int64_t column = 0;
    std::vector<Exl3Part> parts;
    for (const ColumnSpan& span : spans) {
      parts.push_back(MakeExl3Part(layer_, xh[0], span.first, span.count, y.data + column, y.cols));
      column += span.count;
    }
    CHECK(column == y.cols);
    const bool whole = spans.size() == 1 && spans[0].first == 0;
    if (whole && x.rows >= kLongPromptRows) return MultiplyPrompt(parts[0], x.rows, execution);
    return Multiply(rate_, parts, x.rows, execution);
  }

  // Neighbours of one K share a rotation; those of one rate too share the product.
  static Status RunGroup(std::span<const Exl3CudaLinear* const> linears, ConstRows x,
                         std::span<const Rows> y, CudaExecution& execution) {
    const std::vector<void*> xh = TRY(Rotate(linears, x, execution));
    std::vector<Exl3Part> parts;
    for (size_t i = 0; i < linears.size(); ++i) {
      const Exl3CudaLinear& linear = *linears[i];
      CHECK(y[i].cols == linear.out_features && y[i].rows == x.rows);
      parts.push_back(
          MakeExl3Part(linear.layer_, xh[i], 0, linear.out_features, y[i].data, y[i].cols));
    }
    for (size_t first = 0; first < linears.size();) {
      const Exl3KernelRate rate = linears[first]->rate_;
      size_t end = first + 1;
      while (end < linears.size() && linears[end]->rate_ == rate) ++end;
      TRY(Multiply(rate, std::span(parts).subspan(first, end - first), x.rows, execution));
      first = end;
    }
    return {};
  }

  bool SharesInput(const Exl3CudaLinear& other) const {
    return in_features == other.in_features && layer_.k == other.layer_.k;
  }

 private:
  // Rows from which decoding W_q once beats decoding it for every tile of 128 rows.
  static constexpr int64_t kLongPromptRows = 129;

  // Where each linear's rotated rows lie.
  static Result<std::vector<void*>> Rotate(std::span<const Exl3CudaLinear* const> linears,
                                           ConstRows x, CudaExecution& execution) {
    const int64_t k = linears[0]->layer_.k;
    const size_t bytes = Exl3RotatedBytes(x.rows, k);
    auto* memory =
        static_cast<std::byte*>(TRY(execution.rotated().Reserve(bytes * linears.size())));
    std::vector<Exl3Rotation> rotations;
    std::vector<void*> xh;
    for (const Exl3CudaLinear* linear : linears) {
      xh.push_back(memory + bytes * xh.size());
      rotations.push_back(
          {static_cast<const uint16_t*>(linear->suh_.data()), xh.back(), linear->id_});
    }
    int32_t* overflow = execution.faults().overflow();
    TRY(execution.Launch("LaunchExl3Rotations", [&](cudaStream_t stream) {
      return LaunchExl3Rotations(x.data, x.rows, x.cols, k, rotations, overflow, stream);
    }));
    return xh;
  }

  static Status Multiply(Exl3KernelRate rate, std::span<const Exl3Part> parts, int64_t rows,
                         CudaExecution& execution) {
    for (size_t done = 0; done < parts.size(); done += kExl3MaxParts) {
      const auto group = parts.subspan(done, std::min<size_t>(kExl3MaxParts, parts.size() - done));
      const Exl3Workspace workspace = TRY(
          execution.split().Reserve(Exl3PartialsBytes(group, rows), Exl3CounterCount(group, rows)));
      TRY(execution.Launch("LaunchExl3Linear", [&](cudaStream_t stream) {
        return LaunchExl3Linear(rate, group, rows, workspace, stream);
      }));
    }
    return {};
  }

  Status MultiplyPrompt(const Exl3Part& part, int64_t rows, CudaExecution& execution) const {
    void* wq = TRY(execution.decoded().Reserve(Exl3DecodedBytes(layer_.k, layer_.n)));
    TRY(execution.Launch("LaunchExl3Decode", [&](cudaStream_t stream) {
      return LaunchExl3Decode(rate_, layer_, wq, stream);
    }));
    return execution.Launch("LaunchExl3Prompt", [&](cudaStream_t stream) {
      return LaunchExl3Prompt(layer_, part.plan, wq, part.xh, rows, part.y, part.y_stride,
                              part.columns, stream);
    });
  }

  Exl3CudaLinear() = default;

  Exl3KernelRate rate_;
  int32_t id_ = 0;
  Buffer trellis_, suh_, svh_, bias_;
  Exl3DeviceLayer layer_;
};

}  // namespace

Result<size_t> RunExl3Together(std::span<const CudaLinear* const> linears, ConstRows x,
                               std::span<const Rows> y, CudaExecution& execution) {
  std::vector<const Exl3CudaLinear*> group;
  // A long prompt takes them one at a time: W_q has room for one.
  if (x.rows > kExl3TileRows[std::size(kExl3TileRows) - 1]) return 0;
  while (group.size() < std::min<size_t>(linears.size(), kExl3MaxRotations)) {
    const auto* linear = dynamic_cast<const Exl3CudaLinear*>(linears[group.size()]);
    if (linear == nullptr || (!group.empty() && !linear->SharesInput(*group[0]))) break;
    group.push_back(linear);
  }
  if (!group.empty()) {
    TRY(Exl3CudaLinear::RunGroup(group, x, y.first(group.size()), execution));
  }
  return group.size();
}

Result<std::unique_ptr<CudaLinear>> LoadExl3CudaLinear(const LinearSource& source,
                                                       CudaExecution& execution) {
  return Exl3CudaLinear::Load(source, execution);
}

}  // namespace hallmark
