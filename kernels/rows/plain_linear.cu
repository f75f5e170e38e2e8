// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/rows/block_tile.cuh"
#include "kernels/rows/element.cuh"
#include "kernels/rows/plain_linear.h"

namespace hallmark {
namespace {

// A block of threads owns kRows rows and kColumns columns times its column groups. In each round
// its kSlices slices sum one block of 128 terms each; then the owner of an output adds them in
// order. Two buffers of sums: a slice may be one round ahead of the owners, no more.
template <typename Element, int kRows, int kSlices>
__global__ void __launch_bounds__(kLinearThreads, 2)
    PlainLinearKernel(const float* __restrict__ x, int64_t rows, int64_t k,
                      const Element* __restrict__ w, const float* __restrict__ bias,
                      int64_t columns, float* __restrict__ y, int64_t y_stride) {
  constexpr int kColumnGroups = kLinearGroups / kSlices;
  constexpr int kSums = kRows * kLinearColumns;
  constexpr int kOutputs = kColumnGroups * kSums;
  static_assert(kOutputs <= kLinearThreads);
  __shared__ float sums[2][kSlices][kOutputs];

  const int lane = GroupLane();
  // The two groups of a warp share a slice, so that they read the same inputs, or lie in
  // neighbouring ones.
  const int slice = GroupIndex() / kColumnGroups;
  const int group = GroupIndex() % kColumnGroups;
  const int64_t first_row = int64_t{1} * blockIdx.x * kRows;
  const int64_t tile_column = int64_t{1} * blockIdx.y * kColumnGroups * kLinearColumns;
  // Rows and columns past the end read the last one; nobody stores their sums.
  const float* in[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) in[r] = x + min(first_row + r, rows - 1) * k;
  const Element* weights[kLinearColumns];
#pragma unroll
  for (int c = 0; c < kLinearColumns; ++c) {
    weights[c] = w + min(tile_column + group * kLinearColumns + c, columns - 1) * k;
  }

  const int64_t blocks = (k + kSumBlock - 1) / kSumBlock;
  float total = 0.0f;
  int buffer = 0;
  for (int64_t base = 0; base < blocks; base += kSlices, buffer ^= 1) {
    const int64_t start = (base + slice) * kSumBlock;
    const int terms = static_cast<int>(max(min(k - start, kSumBlock), int64_t{0}));
    float v[kSums];
    BlockTile<kRows, kLinearColumns, kSumBlock>(
        lane, terms, [&](int r, int i) { return in[r][start + i]; },
        [&](int c, int i) { return weights[c][start + i].Widen(); }, v);
    if (HoldsFolded<kSums>(lane)) {
#pragma unroll
      for (int i = 0; i < kFoldedPerLane<kSums>; ++i) {
        sums[buffer][slice][group * kSums + FirstFolded<kSums>(lane) + i] = v[i];
      }
    }
    __syncthreads();
    if (threadIdx.x < kOutputs) {
#pragma unroll
      for (int s = 0; s < kSlices; ++s) {
        if (base + s < blocks) total += sums[buffer][s][threadIdx.x];
      }
    }
  }

  if (threadIdx.x >= kOutputs) return;
  const int sum = static_cast<int>(threadIdx.x) % kSums;
  const int64_t row = first_row + sum % kRows;
  const int64_t column =
      tile_column + static_cast<int>(threadIdx.x) / kSums * kLinearColumns + sum / kRows;
  if (row >= rows || column >= columns) return;
  y[row * y_stride + column] = bias != nullptr ? total + bias[column] : total;
}

template <int kRows, int kSlices, typename Element>
cudaError_t LaunchTile(const float* x, int64_t rows, int64_t k, const Element* w, const float* bias,
                       int64_t columns, float* y, int64_t y_stride, cudaStream_t stream) {
  dim3 grid;
  if (!LinearGrid(rows, kRows, columns, kSlices, &grid)) return cudaErrorInvalidValue;
  PlainLinearKernel<Element, kRows, kSlices>
      <<<grid, kLinearThreads, 0, stream>>>(x, rows, k, w, bias, columns, y, y_stride);
  return cudaGetLastError();
}

template <int kSlices, typename Element>
cudaError_t LaunchRows(const float* x, int64_t rows, int64_t k, const Element* w, const float* bias,
                       int64_t columns, float* y, int64_t y_stride, cudaStream_t stream) {
  switch (LinearTileRowsFor(rows)) {
    case 1:
      return LaunchTile<1, kSlices>(x, rows, k, w, bias, columns, y, y_stride, stream);
    case 2:
      return LaunchTile<2, kSlices>(x, rows, k, w, bias, columns, y, y_stride, stream);
    case 4:
      return LaunchTile<4, kSlices>(x, rows, k, w, bias, columns, y, y_stride, stream);
    default:
      return LaunchTile<8, kSlices>(x, rows, k, w, bias, columns, y, y_stride, stream);
  }
}

}  // namespace

cudaError_t LaunchPlainLinear(const float* x, int64_t rows, const PlainWeight& weight,
                              std::span<const LinearSpan> spans, float* y, int64_t y_stride,
                              cudaStream_t stream) {
  if (rows < 0 || weight.k < 1 || LinearWidth(spans) > y_stride) return cudaErrorInvalidValue;
  if (rows == 0) return cudaSuccess;
  return WithElements(weight.type, weight.data, [&](const auto* elements) {
    return ForEachSpan(spans, weight.n, [&](const LinearSpan& span, int64_t column) {
      const auto* w = elements + span.first * weight.k;
      const float* bias = weight.bias == nullptr ? nullptr : weight.bias + span.first;
      return LinearSlicesFor(span.count) == kLinearManySlices
                 ? LaunchRows<kLinearManySlices>(x, rows, weight.k, w, bias, span.count, y + column,
                                                 y_stride, stream)
                 : LaunchRows<kLinearFewSlices>(x, rows, weight.k, w, bias, span.count, y + column,
                                                y_stride, stream);
    });
  });
}

cudaError_t LaunchPlainLinear(const float* x, int64_t rows, const PlainWeight& weight, float* y,
                              cudaStream_t stream) {
  const LinearSpan all{0, weight.n};
  return LaunchPlainLinear(x, rows, weight, std::span(&all, 1), y, weight.n, stream);
}

}  // namespace hallmark
