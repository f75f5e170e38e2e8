// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "kernels/rows/affine_linear.h"
#include "kernels/rows/lane_sum.cuh"

namespace hallmark {
namespace {

constexpr int kTerms = static_cast<int>(kAffineTerms);
constexpr int kColumns = kWarpLanes;  // of a block of threads, one a lane

// An integer below 2^23 as a float, exactly: it is the low bits of 2^23 + value.
__device__ __forceinline__ float SmallFloat(uint32_t value) {
  return std::bit_cast<float>(0x4B000000u | value) - 0x1p23f;
}

// Inputs of one group of 64: element j + 16 t is component t of [row][j], so that one load has all
// the terms of a partial.
template <int kRows>
using StagedInputs = const float4 (&)[kRows][kGroupLanes];

// The sum of row lane / 4 (of the last row, past it), in the order of a BlockedSum; 4 lanes a row.
// Partials begin with their first term instead of zero: that could make a sum -0 for +0, and what
// is added to an output begun at +0 may be either.
template <int kRows>
__device__ __forceinline__ float InputSum(StagedInputs<kRows> x, int lane) {
  const int row = min(lane / 4, kRows - 1);
  const int first = lane % 4;
  const auto partial = [&](int j) {
    const float4 v = x[row][j];
    return ((v.x + v.y) + v.z) + v.w;
  };
  float sum = (partial(first) + partial(first + 8)) + (partial(first + 4) + partial(first + 12));
  sum += __shfl_xor_sync(kWholeWarp, sum, 2);
  sum += __shfl_xor_sync(kWholeWarp, sum, 1);
  return sum;
}

// out[r] <- the dot product of row r and a column's 64 elements, in the same order.
template <int kRows>
__device__ __forceinline__ void Dots(StagedInputs<kRows> x, uint4 low, uint4 high,
                                     float (&out)[kRows]) {
  const uint32_t even[4] = {low.x, low.z, high.x, high.z};  // elements 16 t .. 16 t + 7
  const uint32_t odd[4] = {low.y, low.w, high.y, high.w};   // and the 8 after them
  const auto partial = [&](int j, int row, const float(&q)[4]) {
    const float4 v = x[row][j];
    return ((v.x * q[0] + v.y * q[1]) + v.z * q[2]) + v.w * q[3];
  };
  float halves[2][kRows];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float quarters[2][kRows];
#pragma unroll
    for (int quarter = 0; quarter < 2; ++quarter) {
      const int j = half + 2 * quarter;
      float q[4][4];  // of partials j, j + 8, j + 4, j + 12
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        q[0][t] = SmallFloat(even[t] >> (4 * j) & 15u);
        q[1][t] = SmallFloat(odd[t] >> (4 * j) & 15u);
        q[2][t] = SmallFloat(even[t] >> (4 * j + 16) & 15u);
        q[3][t] = SmallFloat(odd[t] >> (4 * j + 16) & 15u);
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        quarters[quarter][r] = (partial(j, r, q[0]) + partial(j + 8, r, q[1])) +
                               (partial(j + 4, r, q[2]) + partial(j + 12, r, q[3]));
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) halves[half][r] = quarters[0][r] + quarters[1][r];
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) out[r] = halves[0][r] + halves[1][r];
}

// A block of threads owns kRows rows and 32 columns, a lane one column. In each round its warps
// take one group of 64 inputs each and leave what it adds to every output; then the owner of an
// output adds that in order of the groups.
template <int kRows, int kSlices>
__global__ void __launch_bounds__(kWarpLanes* kSlices)
    AffineLinearKernel(const float* __restrict__ x, int64_t rows, int64_t k,
                       const uint32_t* __restrict__ words, const float* __restrict__ scales,
                       const float* __restrict__ biases, int64_t columns, float* __restrict__ y,
                       int64_t y_stride) {
  static_assert(kRows <= kSlices);
  __shared__ float4 staged[kSlices][kRows][kGroupLanes];
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int slice = static_cast<int>(threadIdx.x) / kWarpLanes;
  const int64_t first_row = int64_t{1} * blockIdx.x * kRows;
  // Rows and columns past the end read the last one; nobody stores their sums.
  const int64_t column = int64_t{1} * blockIdx.y * kColumns + lane;
  const int64_t read = min(column, columns - 1);
  const int64_t groups = k / kTerms;
  const auto* weights = reinterpret_cast<const uint4*>(words + read * (k / 8));
  scales += read * groups;
  biases += read * groups;

  // What a slice adds, [row][column], takes the place of its inputs.
  const auto added = [&](int of) { return reinterpret_cast<float*>(staged[of]); };
  float total = 0.0f;  // of row slice, for slices that are one
  for (int64_t base = 0; base < groups; base += kSlices) {
    // A slice past the end repeats the last group; nobody adds what it leaves.
    const int64_t at = min(base + slice, groups - 1);
    const uint4 low = weights[2 * at];
    const uint4 high = weights[2 * at + 1];
    const float scale = scales[at];
    const float bias = biases[at];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float* in = x + min(first_row + r, rows - 1) * k + at * kTerms + lane;
      auto* to = reinterpret_cast<float*>(&staged[slice][r][lane % kGroupLanes]);
      to[lane / kGroupLanes] = in[0];
      to[lane / kGroupLanes + 2] = in[kWarpLanes];
    }
    __syncwarp();
    const float sum = InputSum<kRows>(staged[slice], lane);
    float dots[kRows];
    Dots<kRows>(staged[slice], low, high, dots);
    __syncwarp();  // nobody reads these inputs any more
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      added(slice)[r * kColumns + lane] =
          scale * dots[r] + bias * __shfl_sync(kWholeWarp, sum, 4 * r);
    }
    __syncthreads();
    if (slice < kRows) {
#pragma unroll
      for (int s = 0; s < kSlices; ++s) {
        if (base + s < groups) total += added(s)[threadIdx.x];
      }
    }
    __syncthreads();
  }
  if (slice >= kRows || first_row + slice >= rows || column >= columns) return;
  y[(first_row + slice) * y_stride + column] = total;
}

template <int kRows, int kSlices>
cudaError_t LaunchTile(const float* x, int64_t rows, const AffineWeight& weight,
                       const LinearSpan& span, float* y, int64_t y_stride, cudaStream_t stream) {
  dim3 grid;
  if (!LinearGrid(rows, kRows, span.count, kColumns, &grid)) return cudaErrorInvalidValue;
  const int64_t factors = span.first * (weight.k / kTerms);
  AffineLinearKernel<kRows, kSlices><<<grid, kWarpLanes * kSlices, 0, stream>>>(
      x, rows, weight.k, weight.words + span.first * (weight.k / 8), weight.scales + factors,
      weight.biases + factors, span.count, y, y_stride);
  return cudaGetLastError();
}

template <int kSlices>
cudaError_t LaunchRows(const float* x, int64_t rows, const AffineWeight& weight,
                       const LinearSpan& span, float* y, int64_t y_stride, cudaStream_t stream) {
  switch (LinearTileRowsFor(rows)) {
    case 1:
      return LaunchTile<1, kSlices>(x, rows, weight, span, y, y_stride, stream);
    case 2:
      return LaunchTile<2, kSlices>(x, rows, weight, span, y, y_stride, stream);
    case 4:
      return LaunchTile<4, kSlices>(x, rows, weight, span, y, y_stride, stream);
    default:
      return LaunchTile<8, kSlices>(x, rows, weight, span, y, y_stride, stream);
  }
}

}  // namespace

cudaError_t LaunchAffineLinear(const float* x, int64_t rows, const AffineWeight& weight,
                               std::span<const LinearSpan> spans, float* y, int64_t y_stride,
                               cudaStream_t stream) {
  if (rows < 0 || weight.k < kTerms || weight.k % kTerms != 0 || LinearWidth(spans) > y_stride ||
      reinterpret_cast<uintptr_t>(weight.words) % sizeof(uint4) != 0) {
    return cudaErrorInvalidValue;
  }
  if (rows == 0) return cudaSuccess;
  return ForEachSpan(spans, weight.n, [&](const LinearSpan& span, int64_t column) {
    constexpr int kSlices = 8;
    constexpr int kSlicesOfFewColumns = 16;
    return span.count <= kLinearFewColumns
               ? LaunchRows<kSlicesOfFewColumns>(x, rows, weight, span, y + column, y_stride,
                                                 stream)
               : LaunchRows<kSlices>(x, rows, weight, span, y + column, y_stride, stream);
  });
}

cudaError_t LaunchAffineLinear(const float* x, int64_t rows, const AffineWeight& weight, float* y,
                               cudaStream_t stream) {
  const LinearSpan all{0, weight.n};
  return LaunchAffineLinear(x, rows, weight, std::span(&all, 1), y, weight.n, stream);
}

}  // namespace hallmark
