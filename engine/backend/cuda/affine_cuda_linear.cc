// SPDX-License-Identifier: Apache-2.0
// 4-bit linears on the GPU: words as stored, scales and biases widened to fp32.
#include <utility>
#include <vector>

#include "engine/backend/cuda/cuda_linear.h"
#include "engine/base/check.h"
#include "kernels/rows/affine_linear.h"

namespace hallmark {
namespace {

class AffineCudaLinear : public CudaLinear {
 public:
  static Result<std::unique_ptr<CudaLinear>> Load(const LinearSource& source,
                                                  CudaExecution& execution) {
    const auto& affine = std::get<AffineLinear>(source.weights);
    CHECK(source.in_features == affine.k && source.out_features == affine.n);
    CHECK(affine.k % kAffineGroup == 0);
    auto linear = std::unique_ptr<AffineCudaLinear>(new AffineCudaLinear);
    linear->in_features = affine.k;
    linear->out_features = affine.n;
    linear->words_ = TRY(LoadStored(affine.weight, execution));
    linear->scales_ = TRY(LoadWidened(affine.scales, execution));
    linear->biases_ = TRY(LoadWidened(affine.biases, execution));
    linear->weight_.words = static_cast<const uint32_t*>(linear->words_.data());
    linear->weight_.scales = linear->scales_.floats();
    linear->weight_.biases = linear->biases_.floats();
    linear->weight_.n = affine.n;
    linear->weight_.k = affine.k;
    return std::unique_ptr<CudaLinear>(std::move(linear));
  }

  Status RunColumns(std::span<const ColumnSpan> spans, ConstRows x, Rows y,
                    CudaExecution& execution) const override {
    CHECK(x.cols == in_features && x.rows == y.rows);
    std::vector<LinearSpan> columns;
    for (const ColumnSpan& span : spans) columns.push_back({span.first, span.count});
    CHECK(LinearWidth(columns) == y.cols);
    return execution.Launch("LaunchAffineLinear", [&](cudaStream_t stream) {
      return LaunchAffineLinear(x.data, x.rows, weight_, columns, y.data, y.cols, stream);
    });
  }

 private:
  AffineCudaLinear() = default;

  Buffer words_, scales_, biases_;
  AffineWeight weight_;
};

}  // namespace

Result<std::unique_ptr<CudaLinear>> LoadAffineCudaLinear(const LinearSource& source,
                                                         CudaExecution& execution) {
  return AffineCudaLinear::Load(source, execution);
}

}  // namespace hallmark
