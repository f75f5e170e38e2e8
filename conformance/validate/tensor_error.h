// SPDX-License-Identifier: Apache-2.0
// TensorError: how far the tensors of one model are from those of its source: the normalized mean
// square error ||W - W_q||^2 / ||W||^2, W the source's. One tensor at a time; its pages of both
// files are let go before the next. Sums are double, in a fixed order: threads change no bit.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_TENSOR_ERROR_H_
#define HALLMARK_CONFORMANCE_VALIDATE_TENSOR_ERROR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/validate/progress.h"
#include "engine/base/result.h"
#include "engine/format/inventory.h"

namespace hallmark {

struct TensorError {
  std::string name;                    // of the linear, or of the plain tensor
  const Exl3Group* group = nullptr;    // null: compared value by value
  const TensorView* tensor = nullptr;  // the trellis, or the plain tensor itself
  double nmse = 0;   // 0 for equal tensors; infinite where the source is zero and this is not
  double scale = 1;  // <W, W_q> / <W, W>: 1 for the same magnitude, 0 for another matrix
  int64_t values = 0;
};

// Both are of one geometry (the caller checks). `source` holds plain matrices alone, else
// kUnsupported with the tensor. Every linear in the order of Linears, then the plain tensors.
Result<std::vector<TensorError>> MeasureTensorErrors(const CheckpointInventory& source,
                                                     const CheckpointInventory& model, int threads,
                                                     const StepProgress& progress);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_TENSOR_ERROR_H_
