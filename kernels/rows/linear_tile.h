// SPDX-License-Identifier: Apache-2.0
// How plain and 4-bit linears cut their work: which columns of which weights, rows in tiles, and
// how many groups of 16 lanes share a column's blocks. None of it reaches a bit: block sums are
// added in order by one thread, however many groups made them.
#ifndef HALLMARK_KERNELS_ROWS_LINEAR_TILE_H_
#define HALLMARK_KERNELS_ROWS_LINEAR_TILE_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

namespace hallmark {

// Columns [first, first + count) of a linear's output.
struct LinearSpan {
  int64_t first = 0;
  int64_t count = 0;
};

constexpr int64_t LinearWidth(std::span<const LinearSpan> spans) {
  int64_t width = 0;
  for (const LinearSpan& span : spans) width += span.count;
  return width;
}

// Columns up to which more groups share a column's blocks, since they alone do not fill a device.
inline constexpr int64_t kLinearFewColumns = 2048;
// Rows that share one read of the weights.
constexpr int LinearTileRowsFor(int64_t rows) {
  return rows >= 5 ? 8 : rows >= 3 ? 4 : rows == 2 ? 2 : 1;
}

// Row tiles and column tiles; tiles of one column range follow each other, so that they find its
// weights in the cache. False if it is more than a grid can have.
inline bool LinearGrid(int64_t rows, int tile_rows, int64_t columns, int tile_columns, dim3* grid) {
  const int64_t column_tiles = (columns + tile_columns - 1) / tile_columns;
  const int64_t row_tiles = (rows + tile_rows - 1) / tile_rows;
  if (row_tiles > INT32_MAX || column_tiles > 65535) return false;
  *grid = dim3(static_cast<unsigned>(row_tiles), static_cast<unsigned>(column_tiles));
  return true;
}

// A span of columns of a linear of n outputs.
constexpr bool IsInside(const LinearSpan& span, int64_t n) {
  return span.first >= 0 && span.count >= 0 && span.first + span.count <= n;
}

// run(span, column of y where it goes) for each span, in order; stops at an error. Spans name
// columns of a linear of n outputs.
template <typename Run>
cudaError_t ForEachSpan(std::span<const LinearSpan> spans, int64_t n, const Run& run) {
  for (const LinearSpan& span : spans) {
    if (!IsInside(span, n)) return cudaErrorInvalidValue;
  }
  int64_t column = 0;
  for (const LinearSpan& span : spans) {
    if (span.count > 0) {
      const cudaError_t error = run(span, column);
      if (error != cudaSuccess) return error;
    }
    column += span.count;
  }
  return cudaSuccess;
}

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_ROWS_LINEAR_TILE_H_
