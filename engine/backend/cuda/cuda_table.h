// SPDX-License-Identifier: Apache-2.0
// CudaTable: an embedding table in device memory, or in page-locked host memory that kernels read
// row by row. The rows' bytes are the same, so no result depends on where it lies (clause
// mapped-equals-device).
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_CUDA_TABLE_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_CUDA_TABLE_H_

#include <memory>
#include <span>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/execution.h"
#include "engine/base/result.h"
#include "kernels/rows/element_type.h"

namespace hallmark {

class CudaTable : public EmbeddingTable {
 public:
  // The execution outlives the table.
  static Result<std::unique_ptr<CudaTable>> Load(const TensorView& tensor, bool mapped,
                                                 CudaExecution& execution);
  ~CudaTable() override;

  // Every id is in range.
  Status Embed(std::span<const int32_t> ids, Rows out, CudaExecution& execution) const;

 private:
  explicit CudaTable(CudaStream& stream) : stream_(stream) {}

  CudaStream& stream_;
  ElementType type_ = ElementType::kBf16;
  Buffer memory_;  // one of the two holds the table
  MappedMemory mapped_;
  const void* data_ = nullptr;  // as kernels see it
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_CUDA_TABLE_H_
