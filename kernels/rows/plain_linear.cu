// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/rows/block_tile.cuh"
#include "kernels/rows/element.cuh"
#include "kernels/rows/plain_linear.h"

namespace hallmark {
namespace {

// How a block of threads is cut: kSlices slices sum blocks of 128 terms side by side, each for
// kGroups groups of kColumns columns.
template <int slices, int groups, int columns, int resident>
struct PlainShape {
  static constexpr int kSlices = slices;
  static constexpr int kGroups = groups;
  static constexpr int kColumns = columns;
  static constexpr int kThreads = slices * groups * kGroupLanes;
  static constexpr int kTileColumns = groups * columns;
  static constexpr int kResident = resident;  // blocks that a multiprocessor has to hold
};
// Enough columns to fill a device; and few, whose blocks of terms are summed all at once (5120
// inputs are 40 blocks).
using ManyColumns = PlainShape<4, 4, 4, 2>;
using FewColumns = PlainShape<40, 1, 2, 1>;

struct PlainParts {
  PlainPart of[kPlainMaxParts];
};

// A block of threads owns kRows rows and the shape's columns of one part. In each round its slices
// sum one block of 128 terms each; then the owner of an output adds them in order. Two buffers of
// sums: a slice may be one round ahead of the owners, no more.
template <typename Element, int kRows, typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kResident)
    PlainLinearKernel(const float* __restrict__ x, int64_t rows, int64_t k,
                      const __grid_constant__ PlainParts parts) {
  constexpr int kSlices = Shape::kSlices;
  constexpr int kColumns = Shape::kColumns;
  constexpr int kSums = kRows * kColumns;
  constexpr int kOutputs = Shape::kGroups * kSums;
  static_assert(kOutputs <= Shape::kThreads);
  __shared__ float sums[2][kSlices][kOutputs];

  const PlainPart& part = parts.of[blockIdx.z];
  const int64_t columns = part.columns;
  const int lane = GroupLane();
  // The two groups of a warp share a slice, so that they read the same inputs, or lie in
  // neighbouring ones.
  const int slice = GroupIndex() / Shape::kGroups;
  const int group = GroupIndex() % Shape::kGroups;
  const int64_t first_row = int64_t{1} * blockIdx.x * kRows;
  const int64_t tile_column = int64_t{1} * blockIdx.y * Shape::kTileColumns;
  if (tile_column >= columns) return;  // another part is wider
  // Rows and columns past the end read the last one; nobody stores their sums.
  const float* in[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) in[r] = x + min(first_row + r, rows - 1) * k;
  const Element* weights[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    weights[c] = static_cast<const Element*>(part.data) +
                 min(tile_column + group * kColumns + c, columns - 1) * k;
  }

  const int64_t blocks = (k + kSumBlock - 1) / kSumBlock;
  float total = 0.0f;
  int buffer = 0;
  for (int64_t base = 0; base < blocks; base += kSlices, buffer ^= 1) {
    const int64_t start = (base + slice) * kSumBlock;
    const int terms = static_cast<int>(max(min(k - start, kSumBlock), int64_t{0}));
    float v[kSums];
    BlockTile<kRows, kColumns, kSumBlock>(
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
#pragma unroll 8
      for (int s = 0; s < kSlices; ++s) {
        if (base + s < blocks) total += sums[buffer][s][threadIdx.x];
      }
    }
  }

  if (threadIdx.x >= kOutputs) return;
  const int sum = static_cast<int>(threadIdx.x) % kSums;
  const int64_t row = first_row + sum % kRows;
  const int64_t column =
      tile_column + static_cast<int>(threadIdx.x) / kSums * kColumns + sum / kRows;
  if (row >= rows || column >= columns) return;
  part.y[row * part.y_stride + column] = part.bias != nullptr ? total + part.bias[column] : total;
}

template <typename Element, int kRows, typename Shape>
cudaError_t LaunchTile(const float* x, int64_t rows, int64_t k, const PlainParts& parts,
                       size_t count, int64_t widest, cudaStream_t stream) {
  dim3 grid;
  if (!LinearGrid(rows, kRows, widest, Shape::kTileColumns, &grid)) return cudaErrorInvalidValue;
  grid.z = static_cast<unsigned>(count);
  PlainLinearKernel<Element, kRows, Shape><<<grid, Shape::kThreads, 0, stream>>>(x, rows, k, parts);
  return cudaGetLastError();
}

template <typename Element, typename Shape>
cudaError_t LaunchRows(const float* x, int64_t rows, int64_t k, const PlainParts& parts,
                       size_t count, int64_t widest, cudaStream_t stream) {
  switch (LinearTileRowsFor(rows)) {
    case 1:
      return LaunchTile<Element, 1, Shape>(x, rows, k, parts, count, widest, stream);
    case 2:
      return LaunchTile<Element, 2, Shape>(x, rows, k, parts, count, widest, stream);
    case 4:
      return LaunchTile<Element, 4, Shape>(x, rows, k, parts, count, widest, stream);
    default:
      return LaunchTile<Element, 8, Shape>(x, rows, k, parts, count, widest, stream);
  }
}

}  // namespace

cudaError_t LaunchPlainLinears(const float* x, int64_t rows, int64_t k, ElementType type,
                               std::span<const PlainPart> parts, cudaStream_t stream) {
  if (rows < 0 || k < 1) return cudaErrorInvalidValue;
  for (const PlainPart& part : parts) {
    if (part.columns < 0 || part.columns > part.y_stride) return cudaErrorInvalidValue;
  }
  if (rows == 0) return cudaSuccess;
  for (size_t done = 0; done < parts.size(); done += kPlainMaxParts) {
    const auto some = parts.subspan(done, std::min(kPlainMaxParts, parts.size() - done));
    PlainParts args;
    int64_t widest = 0;
    for (size_t i = 0; i < some.size(); ++i) {
      args.of[i] = some[i];
      widest = std::max(widest, some[i].columns);
    }
    if (widest == 0) continue;
    const cudaError_t error = WithElements(type, nullptr, [&](const auto* elements) {
      using Element = std::remove_const_t<std::remove_pointer_t<decltype(elements)>>;
      return widest <= kLinearFewColumns
                 ? LaunchRows<Element, FewColumns>(x, rows, k, args, some.size(), widest, stream)
                 : LaunchRows<Element, ManyColumns>(x, rows, k, args, some.size(), widest, stream);
    });
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t LaunchPlainLinear(const float* x, int64_t rows, const PlainWeight& weight,
                              std::span<const LinearSpan> spans, float* y, int64_t y_stride,
                              cudaStream_t stream) {
  if (LinearWidth(spans) > y_stride) return cudaErrorInvalidValue;
  std::vector<PlainPart> parts;
  int64_t column = 0;
  for (const LinearSpan& span : spans) {
    if (!IsInside(span, weight.n)) return cudaErrorInvalidValue;
    parts.push_back(PartOf(weight, span, y + column, y_stride));
    column += span.count;
  }
  return LaunchPlainLinears(x, rows, weight.k, weight.type, parts, stream);
}

PlainPart PartOf(const PlainWeight& weight, const LinearSpan& span, float* y, int64_t y_stride) {
  const int64_t size = weight.type == ElementType::kF32 ? 4 : 2;
  return {.data = static_cast<const std::byte*>(weight.data) + span.first * weight.k * size,
          .bias = weight.bias == nullptr ? nullptr : weight.bias + span.first,
          .columns = span.count,
          .y = y,
          .y_stride = y_stride};
}

cudaError_t LaunchPlainLinear(const float* x, int64_t rows, const PlainWeight& weight, float* y,
                              cudaStream_t stream) {
  const LinearSpan all{0, weight.n};
  return LaunchPlainLinear(x, rows, weight, std::span(&all, 1), y, weight.n, stream);
}

}  // namespace hallmark
