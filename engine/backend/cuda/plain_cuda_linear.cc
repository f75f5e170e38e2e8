// SPDX-License-Identifier: Apache-2.0
// Plain linears on the GPU: the matrix stays in its stored type, the bias is fp32.
#include <utility>
#include <vector>

#include "engine/backend/cuda/cuda_linear.h"
#include "engine/backend/cuda/element_type_of.h"
#include "engine/base/check.h"
#include "kernels/rows/plain_linear.h"

namespace hallmark {
namespace {

class PlainCudaLinear : public CudaLinear {
 public:
  bool SharesLaunch(const PlainCudaLinear& other) const {
    return weight_.k == other.weight_.k && weight_.type == other.weight_.type;
  }
  PlainPart Part(Rows y) const {
    CHECK(y.cols == out_features);
    return PartOf(weight_, {0, weight_.n}, y.data, y.cols);
  }
  static Status RunParts(const PlainCudaLinear& first, std::span<const PlainPart> parts,
                         ConstRows x, CudaExecution& execution) {
    CHECK(x.cols == first.in_features);
    return execution.Launch("LaunchPlainLinears", [&](cudaStream_t stream) {
      return LaunchPlainLinears(x.data, x.rows, first.weight_.k, first.weight_.type, parts, stream);
    });
  }

  static Result<std::unique_ptr<CudaLinear>> Load(const LinearSource& source,
                                                  CudaExecution& execution) {
    const PlainLinear& plain = std::get<PlainLinear>(source.weights);
    CHECK(source.in_features == plain.k && source.out_features == plain.n);
    CHECK(plain.weight.elements() == plain.k * plain.n);
    auto linear = std::unique_ptr<PlainCudaLinear>(new PlainCudaLinear);
    linear->in_features = plain.k;
    linear->out_features = plain.n;
    linear->weight_.type = TRY(ElementTypeOf(plain.weight));
    linear->matrix_ = TRY(LoadStored(plain.weight, execution));
    if (plain.bias) {
      CHECK(plain.bias->elements() == plain.n);
      linear->bias_ = TRY(LoadWidened(*plain.bias, execution));
    }
    linear->weight_.data = linear->matrix_.data();
    linear->weight_.bias = linear->bias_.floats();
    linear->weight_.n = plain.n;
    linear->weight_.k = plain.k;
    return std::unique_ptr<CudaLinear>(std::move(linear));
  }

  Status RunColumns(std::span<const ColumnSpan> spans, ConstRows x, Rows y,
                    CudaExecution& execution) const override {
    CHECK(x.cols == in_features && x.rows == y.rows);
    std::vector<LinearSpan> columns;
    for (const ColumnSpan& span : spans) columns.push_back({span.first, span.count});
    CHECK(LinearWidth(columns) == y.cols);
    return execution.Launch("LaunchPlainLinear", [&](cudaStream_t stream) {
      return LaunchPlainLinear(x.data, x.rows, weight_, columns, y.data, y.cols, stream);
    });
  }

 private:
  PlainCudaLinear() = default;

  Buffer matrix_, bias_;
  PlainWeight weight_;
};

}  // namespace

Result<size_t> RunPlainTogether(std::span<const CudaLinear* const> linears, ConstRows x,
                                std::span<const Rows> y, CudaExecution& execution) {
  std::vector<PlainPart> parts;
  const PlainCudaLinear* first = nullptr;
  for (size_t i = 0; i < linears.size() && parts.size() < kPlainMaxParts; ++i) {
    const auto* linear = dynamic_cast<const PlainCudaLinear*>(linears[i]);
    if (linear == nullptr || (first != nullptr && !first->SharesLaunch(*linear))) break;
    if (first == nullptr) first = linear;
    parts.push_back(linear->Part(y[i]));
  }
  if (first != nullptr) TRY(PlainCudaLinear::RunParts(*first, parts, x, execution));
  return parts.size();
}

Result<std::unique_ptr<CudaLinear>> LoadPlainCudaLinear(const LinearSource& source,
                                                        CudaExecution& execution) {
  return PlainCudaLinear::Load(source, execution);
}

}  // namespace hallmark
