// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "kernels/rows/affine_linear.h"
#include "kernels/rows/lane_sum.cuh"

namespace hallmark {
namespace {

constexpr int kTerms = static_cast<int>(kAffineTerms);
constexpr int kLaneTerms = kTerms / kGroupLanes;

// An integer below 2^23 as a float, exactly: it is the low bits of 2^23 + value.
__device__ __forceinline__ float SmallFloat(uint32_t value) {
  return std::bit_cast<float>(0x4B000000u | value) - 0x1p23f;
}

// v[t] <- element lane + 16 t of a group of 64: bits 4 (lane % 8) of word lane / 8 + 2 t.
__device__ __forceinline__ void UnpackLane(const uint32_t* words, int lane,
                                           float (&v)[kLaneTerms]) {
  const uint4 low = reinterpret_cast<const uint4*>(words)[0];
  const uint4 high = reinterpret_cast<const uint4*>(words)[1];
  const bool odd = lane >= 8;
  const int shift = lane % 8 * 4;
  v[0] = SmallFloat((odd ? low.y : low.x) >> shift & 15u);
  v[1] = SmallFloat((odd ? low.w : low.z) >> shift & 15u);
  v[2] = SmallFloat((odd ? high.y : high.x) >> shift & 15u);
  v[3] = SmallFloat((odd ? high.w : high.z) >> shift & 15u);
}

// As PlainLinearKernel, by groups of 64 inputs in place of blocks of 128. A slice leaves dots, and
// once a row the sum of the inputs; the owner of an output scales and adds.
template <int kRows, int kSlices>
__global__ void __launch_bounds__(kLinearThreads, 2)
    AffineLinearKernel(const float* __restrict__ x, int64_t rows, int64_t k,
                       const uint32_t* __restrict__ words, const float* __restrict__ scales,
                       const float* __restrict__ biases, int64_t columns, float* __restrict__ y,
                       int64_t y_stride) {
  constexpr int kColumnGroups = kLinearGroups / kSlices;
  constexpr int kDots = kRows * kLinearColumns;
  constexpr int kOutputs = kColumnGroups * kDots;
  static_assert(kOutputs <= kLinearThreads);
  __shared__ float dots[2][kSlices][kOutputs];
  __shared__ float sums[2][kSlices][kRows];

  const int lane = GroupLane();
  const int slice = GroupIndex() / kColumnGroups;
  const int group = GroupIndex() % kColumnGroups;
  // The first column group of a slice sums its inputs; its warp does so together.
  const bool warp_sums = group / 2 == 0;
  const int64_t first_row = int64_t{1} * blockIdx.x * kRows;
  const int64_t tile_column = int64_t{1} * blockIdx.y * kColumnGroups * kLinearColumns;
  // Rows and columns past the end read the last one; nobody stores their sums.
  const float* in[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) in[r] = x + min(first_row + r, rows - 1) * k + lane;
  const uint32_t* weights[kLinearColumns];
#pragma unroll
  for (int c = 0; c < kLinearColumns; ++c) {
    weights[c] = words + min(tile_column + group * kLinearColumns + c, columns - 1) * (k / 8);
  }

  // Of the owner of an output.
  const int own = static_cast<int>(threadIdx.x) % kDots;
  const int own_row = own % kRows;
  const int64_t own_column =
      tile_column + static_cast<int>(threadIdx.x) / kDots * kLinearColumns + own / kRows;
  const int64_t groups = k / kTerms;
  const int64_t own_factors = min(own_column, columns - 1) * groups;

  float total = 0.0f;
  int buffer = 0;
  for (int64_t base = 0; base < groups; base += kSlices, buffer ^= 1) {
    // A slice past the end repeats the last group; nobody adds what it leaves.
    const int64_t at = min(base + slice, groups - 1);
    float values[kRows][kLaneTerms];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int t = 0; t < kLaneTerms; ++t) values[r][t] = in[r][at * kTerms + t * kGroupLanes];
    }
    float v[kDots];
#pragma unroll
    for (int c = 0; c < kLinearColumns; ++c) {
      float q[kLaneTerms];
      UnpackLane(weights[c] + at * (kTerms / 8), lane, q);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float partial = 0.0f;
#pragma unroll
        for (int t = 0; t < kLaneTerms; ++t) partial += values[r][t] * q[t];
        v[c * kRows + r] = partial;
      }
    }
    FoldScattered<kDots>(v, lane);
    if (HoldsFolded<kDots>(lane)) {
#pragma unroll
      for (int i = 0; i < kFoldedPerLane<kDots>; ++i) {
        dots[buffer][slice][group * kDots + FirstFolded<kDots>(lane) + i] = v[i];
      }
    }
    if (warp_sums) {
      float s[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float partial = 0.0f;
#pragma unroll
        for (int t = 0; t < kLaneTerms; ++t) partial += values[r][t];
        s[r] = partial;
      }
      FoldScattered<kRows>(s, lane);
      if (group == 0 && HoldsFolded<kRows>(lane)) {
        sums[buffer][slice][FirstFolded<kRows>(lane)] = s[0];
      }
    }
    __syncthreads();
    if (threadIdx.x < kOutputs) {
#pragma unroll
      for (int s = 0; s < kSlices; ++s) {
        if (base + s < groups) {
          total += scales[own_factors + base + s] * dots[buffer][s][threadIdx.x] +
                   biases[own_factors + base + s] * sums[buffer][s][own_row];
        }
      }
    }
  }

  const int64_t row = first_row + own_row;
  if (threadIdx.x >= kOutputs || row >= rows || own_column >= columns) return;
  y[row * y_stride + own_column] = total;
}

template <int kRows, int kSlices>
cudaError_t LaunchTile(const float* x, int64_t rows, const AffineWeight& weight,
                       const LinearSpan& span, float* y, int64_t y_stride, cudaStream_t stream) {
  dim3 grid;
  if (!LinearGrid(rows, kRows, span.count, kSlices, &grid)) return cudaErrorInvalidValue;
  const int64_t factors = span.first * (weight.k / kTerms);
  AffineLinearKernel<kRows, kSlices><<<grid, kLinearThreads, 0, stream>>>(
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
    return LinearSlicesFor(span.count) == kLinearManySlices
               ? LaunchRows<kLinearManySlices>(x, rows, weight, span, y + column, y_stride, stream)
               : LaunchRows<kLinearFewSlices>(x, rows, weight, span, y + column, y_stride, stream);
  });
}

cudaError_t LaunchAffineLinear(const float* x, int64_t rows, const AffineWeight& weight, float* y,
                               cudaStream_t stream) {
  const LinearSpan all{0, weight.n};
  return LaunchAffineLinear(x, rows, weight, std::span(&all, 1), y, weight.n, stream);
}

}  // namespace hallmark
