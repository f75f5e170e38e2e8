// SPDX-License-Identifier: Apache-2.0
// The highest columns of each row, exactly: best first, the lowest column first among equals (-0
// and 0 are equal). With a count of 1, the argmax. Implements clause row-invariance, with the
// result of the CPU backend (RefTopColumns): the order is total, so it has one answer.
//
// Blocks of threads sort chunks of 2048 entries and keep the best of each; further passes do the
// same to what was kept, until one chunk is left.
#ifndef HALLMARK_KERNELS_DRAFT_TOP_COLUMNS_H_
#define HALLMARK_KERNELS_DRAFT_TOP_COLUMNS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hallmark {

inline constexpr int64_t kTopMaxCount = 64;
inline constexpr int64_t kTopChunk = 2048;

// Entries that one pass over `entries` of a row leaves.
constexpr int64_t TopKept(int64_t entries, int64_t count) {
  return (entries + kTopChunk - 1) / kTopChunk * count;
}
// uint64 of scratch: what the first pass and the second leave, if there are such.
constexpr int64_t TopColumnsScratch(int64_t rows, int64_t cols, int64_t count) {
  if (cols <= kTopChunk) return 0;
  const int64_t first = TopKept(cols, count);
  return rows * (first + (first <= kTopChunk ? 0 : TopKept(first, count)));
}

// columns int32 and values fp32 [rows, count] <- the `count` (1 .. 64, at most cols) highest of
// each row of logits fp32 [rows, cols], which are finite; scratch as above. All in device memory.
// Up to 2^31 - 1 rows and columns; cudaErrorInvalidValue for other shapes.
cudaError_t LaunchTopColumns(const float* logits, int64_t rows, int64_t cols, int64_t count,
                             uint64_t* scratch, int32_t* columns, float* values,
                             cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_DRAFT_TOP_COLUMNS_H_
