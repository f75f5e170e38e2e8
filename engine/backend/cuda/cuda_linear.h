// SPDX-License-Identifier: Apache-2.0
// CudaLinear: a linear layer in device memory, EXL3, plain or 4-bit, much as the checkpoint stores
// it. Clauses row-invariance and slice-equals-parent, as its kernels keep them.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_CUDA_LINEAR_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_CUDA_LINEAR_H_

#include <memory>
#include <span>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/execution.h"
#include "engine/backend/draft_ops.h"
#include "engine/base/result.h"
#include "engine/format/linear.h"

namespace hallmark {

class CudaLinear : public LinearWeight {
 public:
  // Copies the weights of a source that the format layer has accepted; the source may go away
  // afterwards. kResource names the tensor there was no memory for.
  static Result<std::unique_ptr<CudaLinear>> Load(const LinearSource& source,
                                                  CudaExecution& execution);

  // y [rows, out_features] from x [rows, in_features], which do not overlap.
  Status Run(ConstRows x, Rows y, CudaExecution& execution) const {
    const ColumnSpan all{0, out_features};
    return RunColumns(std::span(&all, 1), x, y, execution);
  }
  // The same for several linears of one input, y[i] of linears[i]: neighbours that are EXL3 layers
  // of one stored K, or plain ones of one type, share their launches. The bits are Run's.
  static Status RunTogether(std::span<const CudaLinear* const> linears, ConstRows x,
                            std::span<const Rows> y, CudaExecution& execution);
  // The same columns alone, side by side in y (DraftOps::LinearColumns).
  virtual Status RunColumns(std::span<const ColumnSpan> spans, ConstRows x, Rows y,
                            CudaExecution& execution) const = 0;
};

// The linears of one form that begin `linears`, in shared launches; how many those were.
Result<size_t> RunExl3Together(std::span<const CudaLinear* const> linears, ConstRows x,
                               std::span<const Rows> y, CudaExecution& execution);
Result<size_t> RunPlainTogether(std::span<const CudaLinear* const> linears, ConstRows x,
                                std::span<const Rows> y, CudaExecution& execution);

// Loaders of one form each; Load chooses.
Result<std::unique_ptr<CudaLinear>> LoadExl3CudaLinear(const LinearSource& source,
                                                       CudaExecution& execution);
Result<std::unique_ptr<CudaLinear>> LoadPlainCudaLinear(const LinearSource& source,
                                                        CudaExecution& execution);
Result<std::unique_ptr<CudaLinear>> LoadAffineCudaLinear(const LinearSource& source,
                                                         CudaExecution& execution);

// A tensor's bytes in device memory, as stored.
Result<Buffer> LoadStored(const TensorView& tensor, CudaExecution& execution);
// A tensor's values in device memory, widened to fp32. kUnsupported for other types than BF16, F16
// and F32.
Result<Buffer> LoadWidened(const TensorView& tensor, CudaExecution& execution);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_CUDA_LINEAR_H_
