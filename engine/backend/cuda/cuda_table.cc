// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_table.h"

#include <cstring>
#include <utility>

#include "engine/backend/cuda/cuda_linear.h"
#include "engine/backend/cuda/element_type_of.h"
#include "engine/base/check.h"
#include "kernels/rows/embed.h"

namespace hallmark {

Result<std::unique_ptr<CudaTable>> CudaTable::Load(const TensorView& tensor, bool mapped,
                                                   CudaExecution& execution) {
  CudaStream& stream = execution.stream();
  auto table = std::unique_ptr<CudaTable>(new CudaTable(stream));
  table->entries = tensor.shape[0];
  table->cols = tensor.shape[1];
  table->type_ = TRY(ElementTypeOf(tensor));
  if (!mapped) {
    table->memory_ = TRY(LoadStored(tensor, execution));
    table->data_ = table->memory_.data();
    return table;
  }
  auto memory = stream.AllocateMapped(tensor.bytes.size());
  if (!memory.has_value()) {
    Error error = std::move(memory).error();
    if (error.code == Code::kResource) error.where = tensor.where();
    return Fail(std::move(error));
  }
  table->mapped_ = *memory;
  std::memcpy(table->mapped_.host, tensor.bytes.data(), tensor.bytes.size());
  table->data_ = table->mapped_.device;
  return table;
}

CudaTable::~CudaTable() {
  if (mapped_.host != nullptr) stream_.Retire(mapped_);
}

Status CudaTable::Embed(std::span<const int32_t> ids, Rows out, CudaExecution& execution) const {
  const int64_t rows = static_cast<int64_t>(ids.size());
  CHECK(out.cols == cols && out.rows >= rows);
  if (ids.empty()) return {};
  void* place = TRY(execution.ids().Reserve(ids.size_bytes()));
  TRY(execution.staging().Send(place, ids.data(), ids.size_bytes()));
  return execution.Launch("LaunchEmbed", [&](cudaStream_t stream) {
    return LaunchEmbed(data_, type_, cols, static_cast<const int32_t*>(place), rows, out.data,
                       stream);
  });
}

}  // namespace hallmark
