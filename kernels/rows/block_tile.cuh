// SPDX-License-Identifier: Apache-2.0
// The inner product of one block of 128 terms for a tile of rows and columns, by one group of 16
// lanes: what plain linears and the drafter's scores share.
#ifndef HALLMARK_KERNELS_ROWS_BLOCK_TILE_CUH_
#define HALLMARK_KERNELS_ROWS_BLOCK_TILE_CUH_

#include "kernels/rows/lane_sum.cuh"

namespace hallmark {

// v <- the folded sums of x(r, i) * w(c, i) over terms i = 0 .. terms - 1 (terms <= kTerms, a
// multiple of 16); sum c * kRows + r lies as FoldScattered leaves it. Terms past the end add +0.
// All lanes of the warp call.
template <int kRows, int kColumns, int kTerms, typename X, typename W>
__device__ __forceinline__ void BlockTile(int lane, int terms, const X& x, const W& w,
                                          float (&v)[kRows * kColumns]) {
  constexpr int kSteps = kTerms / kGroupLanes;
  // Few operands are all asked for before the first is used.
  constexpr int kAhead = (kRows + kColumns) * kSteps <= 40 ? kSteps : 1;
#pragma unroll
  for (float& sum : v) sum = 0.0f;
#pragma unroll
  for (int first = 0; first < kSteps; first += kAhead) {
    float values[kAhead][kRows];
    float weights[kAhead][kColumns];
#pragma unroll
    for (int t = 0; t < kAhead; ++t) {
      const int i = lane + (first + t) * kGroupLanes;
      if (i < terms) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) weights[t][c] = w(c, i);
#pragma unroll
        for (int r = 0; r < kRows; ++r) values[t][r] = x(r, i);
      }
    }
#pragma unroll
    for (int t = 0; t < kAhead; ++t) {
      if (lane + (first + t) * kGroupLanes < terms) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
          for (int c = 0; c < kColumns; ++c) v[c * kRows + r] += values[t][r] * weights[t][c];
        }
      }
    }
  }
  FoldScattered<kRows * kColumns>(v, lane);
}

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_ROWS_BLOCK_TILE_CUH_
