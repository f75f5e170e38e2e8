// SPDX-License-Identifier: Apache-2.0
// Exl3PromptKernel: the product of decoded weights and rotated rows. Included by exl3_prompt.cu
// alone.
//
// A block of threads takes 128 output columns and 128 rows over the whole of K; its 8 warps form 2
// x 4, a warp 64 columns (4 column tiles) and 32 rows (4 groups of 8). Both operands lie in
// fragment order in memory, so that a k-tile of each is copied as it is (4 KiB each) through a ring
// of cp.async stages and read without bank conflicts. A stage has two k-tiles, for one barrier.
//
// Registers hold the running range (`acc`) and the running split (`fold`). The running sum of
// splits, touched once a split, waits in the block's part of y; where y has not all of its 128
// columns, which the output stage needs together, in shared memory beside a shorter ring.
#ifndef HALLMARK_KERNELS_EXL3_EXL3_PROMPT_CUH_
#define HALLMARK_KERNELS_EXL3_EXL3_PROMPT_CUH_

#include <algorithm>

#include "kernels/exl3/exl3_linear.cuh"
#include "kernels/exl3/exl3_prompt.h"

namespace hallmark {

inline constexpr int kPromptRows = 128;
inline constexpr int kPromptThreads = 256;
inline constexpr int kPromptTiles = 4;   // column tiles of a warp
inline constexpr int kPromptGroups = 4;  // row groups of a warp
inline constexpr int kPromptDepth = 2;   // k-tiles of a stage; stages * depth divides K / 16
inline constexpr int kPromptStages = 4;  // in the ring
inline constexpr int kPromptStagesBesideSums = 2;
inline constexpr int kPromptBand = 16;     // row tiles that share a column block's weights in L2
inline constexpr int kPromptWords = 2048;  // of a k-tile: 1,024 of weights, then 1,024 of rows
inline constexpr int kPromptStageWords = kPromptDepth * kPromptWords;
inline constexpr int kPromptStride = kExl3BlockColumns + 4;  // spreads rows over the banks
inline constexpr size_t kPromptTotalBytes = sizeof(float) * kPromptRows * kPromptStride;
inline constexpr size_t kPromptSumBytes = sizeof(float) * kPromptRows * kExl3BlockColumns;
template <bool kSumsInY>
struct Exl3PromptLayout {
  static constexpr int kStages = kSumsInY ? kPromptStages : kPromptStagesBesideSums;
  static constexpr int kRing = kStages * kPromptDepth;  // k-tiles
  static constexpr size_t kRingBytes = size_t{4} * kStages * kPromptStageWords;
  static constexpr size_t kBytes =
      std::max(kRingBytes + (kSumsInY ? 0 : kPromptSumBytes), kPromptTotalBytes);
  static_assert(kBytes <= kExl3PromptSharedBytes);
  static_assert(128 / 16 % kRing == 0);  // K is a multiple of 128
};
static_assert(Exl3PromptLayout<false>::kBytes == kExl3PromptSharedBytes);
static_assert(kExl3PromptSharedBytes <= 101376);

struct Exl3PromptArgs {
  const uint4* wq;
  const uint4* xh;
  const uint16_t* svh;
  const float* bias;
  float* y;
  int64_t y_stride;
  int32_t rows;
  int32_t columns;
  int32_t k_tiles;
  int32_t row_tiles;
  int32_t blocks;  // of 128 columns
  int32_t splits;
  int32_t warps;
  bool wide_stores;  // y and its stride are multiples of 16 bytes
};

// The fragments of one k-tile that one warp multiplies.
struct Exl3PromptFragments {
  uint32_t a[kPromptTiles][4];
  uint2 b[kPromptGroups];

  // `weights` and `rows` are the lane's first words in the stage.
  __device__ __forceinline__ void Load(const uint32_t* weights, const uint32_t* rows) {
#pragma unroll
    for (int i = 0; i < kPromptTiles; ++i) {
      const uint4 words = *reinterpret_cast<const uint4*>(weights + 128 * i);
      a[i][0] = words.x;
      a[i][1] = words.y;
      a[i][2] = words.z;
      a[i][3] = words.w;
    }
#pragma unroll
    for (int q = 0; q < kPromptGroups; ++q) {
      b[q] = *reinterpret_cast<const uint2*>(rows + 64 * q);
    }
  }
};

using Exl3PromptTile = float[kPromptTiles][kPromptGroups][4];

__device__ __forceinline__ void Exl3PromptFill(Exl3PromptTile& tile, float value) {
#pragma unroll
  for (int i = 0; i < kPromptTiles; ++i) {
#pragma unroll
    for (int q = 0; q < kPromptGroups; ++q) {
#pragma unroll
      for (int c = 0; c < 4; ++c) tile[i][q][c] = value;
    }
  }
}

// Where a thread's sums of splits wait: component c of column tile i and row group q.
template <bool kInY>
struct Exl3PromptSums {
  int first_row;  // of the thread
  int first_column;
  float4* shared;  // the thread's first place

  // run(place of c, i, q, c), without the rows that y has not.
  template <typename Run>
  __device__ __forceinline__ void ForEach(const Exl3PromptArgs& args, const Run& run) const {
#pragma unroll
    for (int q = 0; q < kPromptGroups; ++q) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int row = first_row + 8 * q + (c & 1);
        if (row >= args.rows) continue;
        float* y = args.y + row * args.y_stride + first_column + 8 * (c >> 1);
#pragma unroll
        for (int i = 0; i < kPromptTiles; ++i) {
          if constexpr (kInY) {
            run(y[16 * i], i, q, c);
          } else {
            float4* place = shared + (i * kPromptGroups + q) * kPromptThreads;
            run(reinterpret_cast<float*>(place)[c], i, q, c);
          }
        }
      }
    }
  }
};

// Where ranges and splits end, and what happens to the sums there.
template <bool kSumsInY>
class Exl3PromptFold {
 public:
  __device__ Exl3PromptFold(const Exl3PromptArgs& args, const Exl3PromptSums<kSumsInY>& sums)
      : sums_(sums), left_(args.warps) {
    const int ranges = args.splits * args.warps;
    quotient_ = args.k_tiles / ranges;
    remainder_ = args.k_tiles % ranges;
    end_ = quotient_;
    error_ = remainder_;
  }

  // The k-tile past the running range: (r + 1) T / R, counted up without division.
  __device__ int end() const { return end_; }

  // -0 + x has the bits of x, for every x: adding to it stores.
  static constexpr float kNothing = -0.0f;

  __device__ void EndRange(const Exl3PromptArgs& args, Exl3PromptTile& acc, Exl3PromptTile& fold) {
#pragma unroll
    for (int i = 0; i < kPromptTiles; ++i) {
#pragma unroll
      for (int q = 0; q < kPromptGroups; ++q) {
#pragma unroll
        for (int c = 0; c < 4; ++c) fold[i][q][c] += acc[i][q][c];
      }
    }
    Exl3PromptFill(acc, 0.0f);
    end_ += quotient_;
    error_ += remainder_;
    if (error_ >= args.splits * args.warps) {
      error_ -= args.splits * args.warps;
      ++end_;
    }
    if (--left_ == 0) EndSplit(args, fold);
  }

 private:
  // After the last split `fold` is the output's sum.
  __device__ void EndSplit(const Exl3PromptArgs& args, Exl3PromptTile& fold) {
    left_ = args.warps;
    ++done_;
    if (args.splits == 1) return;
    if (done_ > 1) {
      sums_.ForEach(
          args, [&](float& place, int i, int q, int c) { fold[i][q][c] = place + fold[i][q][c]; });
    }
    if (done_ < args.splits) {
      sums_.ForEach(args, [&](float& place, int i, int q, int c) { place = fold[i][q][c]; });
      Exl3PromptFill(fold, kNothing);
    }
  }

  Exl3PromptSums<kSumsInY> sums_;
  int left_;      // ranges that the running split still lacks
  int done_ = 0;  // splits
  int quotient_;
  int remainder_;
  int end_;
  int error_;
};

// y <- ((total H) * svh) + bias; a warp takes a row, a lane 4 columns.
__device__ __forceinline__ void Exl3PromptOutput(const Exl3PromptArgs& args, int block,
                                                 int first_row, const float* total, int warp,
                                                 int lane) {
  const int rows = min(kPromptRows, args.rows - first_row);
  const int valid = min(kExl3BlockColumns, args.columns - block * kExl3BlockColumns);
  const int column = block * kExl3BlockColumns + 4 * lane;
  float scale[4], bias[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    scale[e] = __half2float(__ushort_as_half(args.svh[column + e]));
    bias[e] = args.bias != nullptr ? args.bias[column + e] : 0.0f;
  }
  const bool wide = args.wide_stores && 4 * lane + 4 <= valid;
  constexpr int kWarps = kPromptThreads / 32;
  constexpr int kAtOnce = 4;  // rows whose shuffles hide one another's time
  for (int first = warp; first < kPromptRows; first += kAtOnce * kWarps) {
    float v[kAtOnce][4];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const float* row = total + (first + i * kWarps) * kPromptStride;
      const float4 in = *reinterpret_cast<const float4*>(row + 4 * lane);
      v[i][0] = in.x;
      v[i][1] = in.y;
      v[i][2] = in.z;
      v[i][3] = in.w;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) WarpHadamard128(v[i], lane);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int row = first + i * kWarps;
      if (row >= rows) break;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        v[i][e] *= scale[e];
        if (args.bias != nullptr) v[i][e] += bias[e];
      }
      float* y = args.y + (first_row + row) * args.y_stride + column;
      if (wide) {
        *reinterpret_cast<float4*>(y) = make_float4(v[i][0], v[i][1], v[i][2], v[i][3]);
        continue;
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (4 * lane + e < valid) y[e] = v[i][e];
      }
    }
  }
}

template <bool kSumsInY>
__global__ void __launch_bounds__(kPromptThreads, 1)
    Exl3PromptKernel(const __grid_constant__ Exl3PromptArgs args) {
  extern __shared__ __align__(16) uint32_t prompt_shared[];
  using Layout = Exl3PromptLayout<kSumsInY>;
  using Fold = Exl3PromptFold<kSumsInY>;
  constexpr int kStages = Layout::kStages;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;

  // Bands of row tiles; in a band the row tiles of one column block follow one another.
  const int index = static_cast<int>(blockIdx.x);
  const int band = index / (kPromptBand * args.blocks);
  const int in_band = index - band * kPromptBand * args.blocks;
  const int height = min(kPromptBand, args.row_tiles - band * kPromptBand);
  const int block = in_band / height;
  const int tile = band * kPromptBand + in_band % height;

  // A thread copies 16 bytes of the weights and 16 bytes of the rows of every k-tile. Groups past
  // the last row repeat it: their columns of the product are dropped.
  const uint4* weights = args.wq + static_cast<int64_t>(block) * args.k_tiles * 256 + thread;
  const int group = min(tile * (kPromptRows / 8) + thread / 16, (args.rows - 1) / 8);
  const uint4* rows = args.xh + static_cast<int64_t>(group) * args.k_tiles * 16 + thread % 16;
  const auto fetch = [&](int k, int stage) {
    if (k < args.k_tiles) {
#pragma unroll
      for (int d = 0; d < kPromptDepth; ++d) {
        uint32_t* to = prompt_shared + stage * kPromptStageWords + d * kPromptWords + 4 * thread;
        Exl3CopyAsync(to, reinterpret_cast<const uint32_t*>(weights));
        Exl3CopyAsync(to + 1024, reinterpret_cast<const uint32_t*>(rows));
        weights += 256;
        rows += 16;
      }
    }
    Exl3CommitCopies();  // an empty group keeps the count in step
  };

  const int g = lane / 4;
  const int t = lane % 4;
  const int first_tile = warp % 2 * kPromptTiles;
  const int first_group = warp / 2 * kPromptGroups;
  const uint32_t* my_weights = prompt_shared + first_tile * 128 + 4 * lane;
  const uint32_t* my_rows = prompt_shared + 1024 + first_group * 64 + 2 * lane;
  Exl3PromptTile acc, fold;
  Exl3PromptFill(acc, 0.0f);
  Exl3PromptFill(fold, Fold::kNothing);
  Fold folding(
      args, {.first_row = tile * kPromptRows + 8 * first_group + 2 * t,
             .first_column = block * kExl3BlockColumns + 16 * first_tile + g,
             .shared = reinterpret_cast<float4*>(prompt_shared + Layout::kRingBytes / 4) + thread});
  Exl3PromptFragments fragments[2];

#pragma unroll
  for (int s = 0; s < kStages; ++s) fetch(kPromptDepth * s, s);
  Exl3WaitCopies<kStages - 1>();
  __syncthreads();
  fragments[0].Load(my_weights, my_rows);
  constexpr int kRing = Layout::kRing;
  for (int k = 0; k < args.k_tiles; k += kRing) {
#pragma unroll
    for (int s = 0; s < kRing; ++s) {
      // K-tile k + s is in registers. Before the first of the next stage is read, that stage has to
      // have landed for every thread; every warp then holds this stage's last k-tile in registers,
      // and the stage takes the k-tiles kRing ahead. After the last k-tile a stale one is read.
      if (s % kPromptDepth == kPromptDepth - 1) {
        Exl3WaitCopies<kStages - 2>();
        __syncthreads();
        fetch(k + s + 1 - kPromptDepth + kRing, s / kPromptDepth);
      }
      const int next = (s + 1) % kRing * kPromptWords;
      fragments[(s + 1) % 2].Load(my_weights + next, my_rows + next);
      const Exl3PromptFragments& now = fragments[s % 2];
#pragma unroll
      for (int i = 0; i < kPromptTiles; ++i) {
#pragma unroll
        for (int q = 0; q < kPromptGroups; ++q) Exl3Mma(acc[i][q], now.a[i], now.b[q]);
      }
      if (k + s + 1 == folding.end()) [[unlikely]] {
        folding.EndRange(args, acc, fold);
      }
    }
  }

  // The ring becomes rows of the output.
  Exl3WaitCopies<0>();
  __syncthreads();
  float* total = reinterpret_cast<float*>(prompt_shared);
#pragma unroll
  for (int i = 0; i < kPromptTiles; ++i) {
#pragma unroll
    for (int q = 0; q < kPromptGroups; ++q) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int row = 8 * (first_group + q) + 2 * t + (c & 1);
        total[row * kPromptStride + 16 * (first_tile + i) + g + 8 * (c >> 1)] = fold[i][q][c];
      }
    }
  }
  __syncthreads();
  Exl3PromptOutput(args, block, tile * kPromptRows, total, warp, lane);
}

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_EXL3_EXL3_PROMPT_CUH_
