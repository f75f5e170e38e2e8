// SPDX-License-Identifier: Apache-2.0
// Launcher of a plain linear, y = x W^T + bias, in fp32 with weights widened from their stored
// type. Implements clauses row-invariance and slice-equals-parent, with the bits of the CPU backend
// (RefPlainLinear): a column is a BlockedSum of products rounded to fp32, then the bias is added.
//
// Groups of 16 lanes make the sums of single blocks, and one thread adds a column's blocks in
// order. Rows share reads of the weights and nothing else.
#ifndef HALLMARK_KERNELS_ROWS_PLAIN_LINEAR_H_
#define HALLMARK_KERNELS_ROWS_PLAIN_LINEAR_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/rows/element_type.h"
#include "kernels/rows/linear_tile.h"

namespace hallmark {

// All in device memory.
struct PlainWeight {
  ElementType type = ElementType::kF32;
  const void* data = nullptr;   // [n, k]
  const float* bias = nullptr;  // [n] or null
  int64_t n = 0;
  int64_t k = 0;
};

// Columns of one weight and where they go; row i of y begins y_stride floats after row i - 1.
struct PlainPart {
  const void* data = nullptr;   // [columns, k]
  const float* bias = nullptr;  // [columns] or null
  int64_t columns = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
};
inline constexpr size_t kPlainMaxParts = 4;  // of a launch
PlainPart PartOf(const PlainWeight& weight, const LinearSpan& span, float* y, int64_t y_stride);

// Several parts of one input and one type, kPlainMaxParts a launch. x and y do not overlap.
// cudaErrorInvalidValue for k < 1, a stride below a part's columns, or more than a million columns.
cudaError_t LaunchPlainLinears(const float* x, int64_t rows, int64_t k, ElementType type,
                               std::span<const PlainPart> parts, cudaStream_t stream);

// y <- the columns that `spans` name, side by side, for x [rows, k]; row i of y begins y_stride
// floats after row i - 1, and floats past the columns keep what they hold. x and
// y do not overlap. cudaErrorInvalidValue for spans outside the weight, a stride below their width,
// k < 1, or a span of more than a million columns.
cudaError_t LaunchPlainLinear(const float* x, int64_t rows, const PlainWeight& weight,
                              std::span<const LinearSpan> spans, float* y, int64_t y_stride,
                              cudaStream_t stream);

// Every column, y [rows, n].
cudaError_t LaunchPlainLinear(const float* x, int64_t rows, const PlainWeight& weight, float* y,
                              cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_ROWS_PLAIN_LINEAR_H_
