// SPDX-License-Identifier: Apache-2.0
// EXL3 linears on the GPU: the trellis stays as it is stored, scales are fp16 (packed signs are
// expanded: +-1 is exact), the bias fp32.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/cuda/cuda_linear.h"
#include "engine/base/check.h"
#include "kernels/exl3/exl3_linear.h"

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
    void* xh = TRY(execution.rotated().Reserve(Exl3RotatedBytes(x.rows, layer_.k)));
    const auto* suh = static_cast<const uint16_t*>(suh_.data());
    int32_t* overflow = execution.faults().overflow();
    TRY(execution.Launch("LaunchExl3Rotate", [&](cudaStream_t stream) {
      return LaunchExl3Rotate(x.data, x.rows, x.cols, suh, layer_.k, xh, id_, overflow, stream);
    }));
    int64_t column = 0;
    std::vector<Exl3Part> parts;
    for (const ColumnSpan& span : spans) {
      parts.push_back(MakeExl3Part(layer_, xh, span.first, span.count, y.data + column, y.cols));
      column += span.count;
    }
    CHECK(column == y.cols);
    for (size_t done = 0; done < parts.size(); done += kExl3MaxParts) {
      const auto group = std::span<const Exl3Part>(parts).subspan(
          done, std::min<size_t>(kExl3MaxParts, parts.size() - done));
      const Exl3Workspace workspace = TRY(execution.split().Reserve(
          Exl3PartialsBytes(group, x.rows), Exl3CounterCount(group, x.rows)));
      TRY(execution.Launch("LaunchExl3Linear", [&](cudaStream_t stream) {
        return LaunchExl3Linear(rate_, group, x.rows, workspace, stream);
      }));
    }
    return {};
  }

 private:
  Exl3CudaLinear() = default;

  Exl3KernelRate rate_;
  int32_t id_ = 0;
  Buffer trellis_, suh_, svh_, bias_;
  Exl3DeviceLayer layer_;
};

}  // namespace

Result<std::unique_ptr<CudaLinear>> LoadExl3CudaLinear(const LinearSource& source,
                                                       CudaExecution& execution) {
  return Exl3CudaLinear::Load(source, execution);
}

}  // namespace hallmark
