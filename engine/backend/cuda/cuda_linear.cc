// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_linear.h"

#include <utility>
#include <variant>

#include "engine/backend/cpu/widen.h"
#include "engine/base/check.h"

namespace hallmark {
namespace {

// Memory that runs out while a checkpoint is opened is told by the tensor it was wanted for.
Result<Buffer> AllocateFor(const TensorView& tensor, size_t bytes, CudaExecution& execution) {
  auto buffer = execution.arena().Allocate(bytes);
  if (buffer.has_value()) return buffer;
  Error error = std::move(buffer).error();
  if (error.code == Code::kResource) error.where = tensor.where();
  return Fail(std::move(error));
}

}  // namespace

Result<std::unique_ptr<CudaLinear>> CudaLinear::Load(const LinearSource& source,
                                                     CudaExecution& execution) {
  if (std::holds_alternative<Exl3Group>(source.weights)) {
    return LoadExl3CudaLinear(source, execution);
  }
  if (std::holds_alternative<AffineLinear>(source.weights)) {
    return LoadAffineCudaLinear(source, execution);
  }
  return LoadPlainCudaLinear(source, execution);
}

Status CudaLinear::RunTogether(std::span<const CudaLinear* const> linears, ConstRows x,
                               std::span<const Rows> y, CudaExecution& execution) {
  CHECK(linears.size() == y.size());
  if (x.rows == 0) return {};
  while (!linears.empty()) {
    size_t done = TRY(RunExl3Together(linears, x, y, execution));
    if (done == 0) done = TRY(RunPlainTogether(linears, x, y, execution));
    if (done == 0) {
      TRY(linears[0]->Run(x, y[0], execution));
      done = 1;
    }
    linears = linears.subspan(done);
    y = y.subspan(done);
  }
  return {};
}

Result<Buffer> LoadStored(const TensorView& tensor, CudaExecution& execution) {
  Buffer buffer = TRY(AllocateFor(tensor, tensor.bytes.size(), execution));
  TRY(execution.staging().Send(buffer.data(), tensor.bytes.data(), tensor.bytes.size()));
  return buffer;
}

Result<Buffer> LoadWidened(const TensorView& tensor, CudaExecution& execution) {
  float first = 0.0f;
  TRY(WidenToFloat(tensor, 0, tensor.elements() > 0 ? 1 : 0, &first));  // refuses other types
  const size_t bytes = static_cast<size_t>(tensor.elements()) * sizeof(float);
  Buffer buffer = TRY(AllocateFor(tensor, bytes, execution));
  TRY(execution.staging().SendFilled(
      buffer.data(), bytes, [&](size_t begin, size_t count, std::byte* place) {
        const Status widened = WidenToFloat(tensor, static_cast<int64_t>(begin / sizeof(float)),
                                            static_cast<int64_t>(count / sizeof(float)),
                                            reinterpret_cast<float*>(place));
        CHECK(widened.has_value());
      }));
  return buffer;
}

}  // namespace hallmark
