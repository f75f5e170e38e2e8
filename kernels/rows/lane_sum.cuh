// SPDX-License-Identifier: Apache-2.0
// BlockedSum (engine/base/blocked_sum.h) on the device: 16 lanes of a warp hold the 16 partials of
// a block of 128 terms, lane j adding terms j, j + 16, ... in order; partials are folded 8, 4, 2
// and 1 apart by shuffles; blocks are added in order from zero. The same bits as the host's sum.
//
// Every lane of a warp must call these together: the shuffles name all 32. A partial is never -0
// (it starts at +0), so terms past the end may be left out or added as zeros.
#ifndef HALLMARK_KERNELS_ROWS_LANE_SUM_CUH_
#define HALLMARK_KERNELS_ROWS_LANE_SUM_CUH_

#include <cstdint>

#include "engine/base/blocked_sum.h"

namespace hallmark {

inline constexpr int kWarpLanes = 32;
inline constexpr int kGroupLanes = 16;
inline constexpr unsigned kWholeWarp = 0xFFFFFFFFu;
static_assert(kGroupLanes == kSumLanes);

__device__ __forceinline__ int GroupLane() { return static_cast<int>(threadIdx.x) % kGroupLanes; }
// Which group of 16 lanes of its block of threads.
__device__ __forceinline__ int GroupIndex() { return static_cast<int>(threadIdx.x) / kGroupLanes; }

// The fold of one partial a lane; all 16 lanes get it. Adding left to right or right to left gives
// the same bits, so lane j and lane j + 8 agree.
__device__ __forceinline__ float FoldLanes(float partial) {
#pragma unroll
  for (int step = kGroupLanes / 2; step > 0; step /= 2) {
    partial += __shfl_xor_sync(kWholeWarp, partial, step);
  }
  return partial;
}

// The folds of `kCount` sums (a power of two) at once: at each step a lane keeps one half of its
// sums and hands the other to its partner, so that a fold costs about one shuffle instead of four.
// Lane j ends with sums FirstFolded<kCount>(j) ... in v[0], v[1], ...: kCount / 16 of them, or one
// that 16 / kCount lanes share.
template <int kCount, int kStep = kGroupLanes / 2, int kSize>
__device__ __forceinline__ void FoldScattered(float (&v)[kSize], int lane) {
  constexpr int kHalf = kCount / 2;
  if constexpr (kCount > 1) {
    const bool upper = (lane & kStep) != 0;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float keep = upper ? v[i + kHalf] : v[i];
      const float give = upper ? v[i] : v[i + kHalf];
      v[i] = keep + __shfl_xor_sync(kWholeWarp, give, kStep);
    }
  } else {
    v[0] += __shfl_xor_sync(kWholeWarp, v[0], kStep);
  }
  if constexpr (kStep > 1) FoldScattered<(kCount > 1 ? kHalf : 1), kStep / 2>(v, lane);
}
template <int kCount>
inline constexpr int kFoldedPerLane = kCount > kGroupLanes ? kCount / kGroupLanes : 1;
template <int kCount>
__device__ __forceinline__ int FirstFolded(int lane) {
  return lane * kCount / kGroupLanes;
}
// True in one of the lanes that share a sum.
template <int kCount>
__device__ __forceinline__ bool HoldsFolded(int lane) {
  constexpr int kSharers = kCount < kGroupLanes ? kGroupLanes / kCount : 1;
  return lane % kSharers == 0;
}

// The partial of lane `lane` in the block that begins at term `start`.
template <typename Term>
__device__ __forceinline__ float LanePartial(int64_t start, int64_t count, int lane,
                                             const Term& term) {
  float partial = 0.0f;
#pragma unroll
  for (int t = 0; t < kSumBlock / kSumLanes; ++t) {
    const int64_t i = start + lane + t * kGroupLanes;
    if (i < count) partial += term(i);
  }
  return partial;
}

// term(0) + ... + term(count - 1) by one group of 16 lanes; each of them gets the sum. The two
// groups of a warp pass the same count.
template <typename Term>
__device__ __forceinline__ float GroupSum(int64_t count, int lane, const Term& term) {
  float total = 0.0f;
  for (int64_t start = 0; start < count; start += kSumBlock) {
    total += FoldLanes(LanePartial(start, count, lane, term));
  }
  return total;
}

// The same by a whole block of threads (a multiple of 32, one-dimensional), every thread of which
// calls and gets the sum: groups sum blocks in parallel, and each thread adds the blocks in order.
// sums: shared memory [kBlockSums]. Ends with a barrier: what the terms were read from may be
// overwritten.
inline constexpr int kBlockSums = 256;
template <typename Term>
__device__ __forceinline__ float ThreadBlockSum(int64_t count, float* sums, const Term& term) {
  const int lane = GroupLane();
  const int groups = static_cast<int>(blockDim.x) / kGroupLanes;
  const int64_t blocks = (count + kSumBlock - 1) / kSumBlock;
  float total = 0.0f;
  for (int64_t base = 0; base < blocks; base += kBlockSums) {
    const int here = static_cast<int>(blocks - base < kBlockSums ? blocks - base : kBlockSums);
    // The two groups of a warp take neighbours, so that both leave the loop together.
    for (int first = GroupIndex() / 2 * 2; first < here; first += groups) {
      const int block = first + GroupIndex() % 2;
      const int64_t end = block < here ? count : 0;
      const float sum = FoldLanes(LanePartial((base + block) * kSumBlock, end, lane, term));
      if (lane == 0 && block < here) sums[block] = sum;
    }
    __syncthreads();
    for (int i = 0; i < here; ++i) total += sums[i];
    __syncthreads();
  }
  return total;
}

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_ROWS_LANE_SUM_CUH_
