// SPDX-License-Identifier: Apache-2.0
// Rows of an embedding table, and copies between rows of different widths. Implements clauses
// row-invariance and mapped-equals-device: values are widened exactly, and nothing is computed.
#ifndef HALLMARK_KERNELS_ROWS_EMBED_H_
#define HALLMARK_KERNELS_ROWS_EMBED_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/rows/element_type.h"

namespace hallmark {

// out[i] = table[ids[i]], fp32 [rows, cols]. table [entries, cols] of `type` in device memory or in
// host memory that the device can read; ids int32 [rows] in device memory, each in range (the
// caller checks). Tables and outputs at multiples of 16 bytes, with rows of multiples of 16 bytes,
// are read faster. Up to 2^31 - 1 rows; cudaErrorInvalidValue for other shapes.
cudaError_t LaunchEmbed(const void* table, ElementType type, int64_t cols, const int32_t* ids,
                        int64_t rows, float* out, cudaStream_t stream);

// out[:, column .. column + cols) = x [rows, cols] for out [rows, out_cols]; the other columns keep
// what they hold. cudaErrorInvalidValue if the columns do not fit.
cudaError_t LaunchCopyColumns(const float* x, int64_t rows, int64_t cols, int64_t column,
                              int64_t out_cols, float* out, cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_ROWS_EMBED_H_
