// SPDX-License-Identifier: Apache-2.0
// Exl3LinearKernel: the product of one rate, for every tile height. Included by the generated file
// of each rate alone.
//
// A block of threads takes 128 output columns (8 column tiles), 8 * kGroups rows and one split. Its
// warps form kSlots x kColumnWarps: a warp owns kColumnTiles column tiles and, one after another,
// the split's ranges slot, slot + kSlots, ... . For each k-tile it decodes its weights once and
// multiplies them with every group of 8 rows: W^T is the A operand, the rows are the B operand, so
// that 8 rows cost one mma a tile and a row is a column of the product, independent of the others.
//
// Order of sums, the same for every kGroups: a range is one chain of mma from zero; after every
// kSlots ranges the slots add their accumulators to the block's total one slot at a time, in range
// order, the first range being stored; splits are added in order by the block that arrives last.
//
// Weights come through a ring of cp.async stages private to each warp: no barrier in the loop.
#ifndef HALLMARK_KERNELS_EXL3_EXL3_LINEAR_CUH_
#define HALLMARK_KERNELS_EXL3_EXL3_LINEAR_CUH_

#include "kernels/exl3/decode.cuh"
#include "kernels/exl3/exl3_linear.h"
#include "kernels/exl3/hadamard.cuh"

namespace hallmark {

inline constexpr int kExl3BlockColumns = 128;

// The geometry of one kernel: everything that depends on rate and tile height, none of it seen in
// the bits.
template <int kK2, int kGroups>
struct Exl3Shape {
  static constexpr int kRows = 8 * kGroups;
  static constexpr int kColumnTiles = kGroups <= 2 ? 8 : 16 / kGroups;  // of one warp
  static constexpr int kColumnWarps = 8 / kColumnTiles;
  static constexpr int kWarps = kGroups <= 2 ? 8 : 16;
  static constexpr int kSlots = kWarps / kColumnWarps;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kBlocksPerSm = kGroups <= 2 ? 2 : 1;

  static constexpr int kTileWords = Exl3TileWords(kK2);
  // A stage is kStageTiles k-tiles of the warp's columns.
  static constexpr int kStageTiles = kGroups <= 8 ? 8 / kColumnTiles : 4;
  static constexpr int kStageWords = kStageTiles * kColumnTiles * kTileWords;
  static constexpr int kRingWords = (kGroups <= 2   ? 40
                                     : kGroups <= 8 ? 64
                                                    : 32) *
                                    1024 / 4 / kWarps;
  static constexpr int kStages = kRingWords / kStageWords < 4 ? kRingWords / kStageWords : 4;
  static_assert(kStages >= 2);

  static constexpr int kTotalStride = kExl3BlockColumns + 4;  // spreads rows over the banks
  static constexpr size_t kTotalBytes = sizeof(float) * kRows * kTotalStride;
  static constexpr size_t kSharedBytes = kTotalBytes + 4 * size_t{kWarps} * kStages * kStageWords;
  static_assert(kSharedBytes + 1024 <= 101376);
};

// One part as the kernel reads it.
struct Exl3KernelPart {
  const uint32_t* trellis;
  const uint2* xh;
  const uint16_t* svh;
  const float* bias;
  float* y;
  int64_t y_stride;
  int64_t first_column;
  int32_t columns;
  int32_t column_tiles;  // n / 16 of the whole layer
  int32_t blocks;        // column blocks of this part
  int32_t first_block;   // blocks.x before this part
  int32_t first_counter;
  int32_t splits;
  int32_t warps;
  int64_t first_partial;  // in floats
};
struct Exl3KernelParts {
  Exl3KernelPart part[kExl3MaxParts];
  int32_t count;
  int32_t k_tiles;
  int32_t rows;
  float* partials;
  int32_t* counters;
};

__device__ __forceinline__ void Exl3Mma(float (&c)[4], const uint32_t (&a)[4], uint2 b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

__device__ __forceinline__ void Exl3CopyAsync(uint32_t* shared, const uint32_t* global) {
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global));
}
__device__ __forceinline__ void Exl3CommitCopies() { asm volatile("cp.async.commit_group;"); }
template <int kPending>
__device__ __forceinline__ void Exl3WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// One range: acc <- chain over k-tiles [first, last) from zero.
template <int kCodebook, int kK2, int kGroups>
class Exl3Range {
  using Shape = Exl3Shape<kK2, kGroups>;

 public:
  // `column` is the warp's first column tile in the layer; `ring` its part of shared memory.
  __device__ Exl3Range(const Exl3KernelParts& parts, const Exl3KernelPart& part, int column,
                       int first_group, int lane, uint32_t* ring)
      : words_(lane), lane_(lane), ring_(ring) {
    row_words_ = static_cast<int64_t>(part.column_tiles) * Shape::kTileWords;
    trellis_ = part.trellis + static_cast<int64_t>(column) * Shape::kTileWords;
    first_group_ = first_group;
    last_group_ = (parts.rows - 1) / 8;
    group_stride_ = parts.k_tiles * 32;
    if constexpr (kPrefetch) {
#pragma unroll
      for (int q = 0; q < kGroups; ++q) xh_[q] = RowsOffset(q);
    }
    xh_base_ = part.xh + lane;
  }

  __device__ void Run(int first, int last, float (&acc)[Shape::kColumnTiles][kGroups][4]) {
#pragma unroll
    for (int i = 0; i < Shape::kColumnTiles; ++i) {
#pragma unroll
      for (int q = 0; q < kGroups; ++q) {
#pragma unroll
        for (int c = 0; c < 4; ++c) acc[i][q][c] = 0.0f;
      }
    }
    // Lanes may still read the ring's last stage of the range before.
    __syncwarp();
    if constexpr (kPrefetch) LoadRows(first);
#pragma unroll
    for (int s = 0; s < Shape::kStages - 1; ++s) Fetch(first + s * Shape::kStageTiles, last, s);
    int stage = 0;
    for (int k = first; k < last; k += Shape::kStageTiles) {
      Exl3WaitCopies<Shape::kStages - 2>();
      // Every lane's copies have landed, and every lane is done with the stage that is refilled.
      __syncwarp();
      const int refill = stage == 0 ? Shape::kStages - 1 : stage - 1;
      Fetch(k + (Shape::kStages - 1) * Shape::kStageTiles, last, refill);
      const uint32_t* tiles = ring_ + stage * Shape::kStageWords;
#pragma unroll
      for (int d = 0; d < Shape::kStageTiles; ++d) {
        if (k + d >= last) break;
        Multiply(tiles + d * Shape::kColumnTiles * Shape::kTileWords, k + d,
                 min(k + d + 1, last - 1), acc);
      }
      stage = stage == Shape::kStages - 1 ? 0 : stage + 1;
    }
    Exl3WaitCopies<0>();
  }

 private:
  __device__ void Fetch(int k, int last, int stage) {
    constexpr int kRowChunks = Shape::kColumnTiles * Shape::kTileWords / 4;  // of 16 bytes
    constexpr int kChunks = Shape::kStageTiles * kRowChunks;
    uint32_t* to = ring_ + stage * Shape::kStageWords;
#pragma unroll
    for (int first = 0; first < kChunks; first += 32) {
      const int chunk = first + lane_;
      const int row = k + chunk / kRowChunks;
      if (chunk < kChunks && row < last) {
        Exl3CopyAsync(to + 4 * chunk, trellis_ + row * row_words_ + chunk % kRowChunks * 4);
      }
    }
    Exl3CommitCopies();  // an empty group keeps the count in step
  }

  __device__ void LoadRows(int k) {
#pragma unroll
    for (int q = 0; q < kGroups; ++q) {
      rows_[q] = __ldg(xh_base_ + (kPrefetch ? xh_[q] : RowsOffset(q)) + k * 32);
    }
  }
  // Groups past the last row repeat it: their columns of the product are dropped.
  __device__ int RowsOffset(int q) const {
    return min(first_group_ + q, last_group_) * group_stride_;
  }

  // `next` is the k-tile after this one: its rows are asked for before this one's weights are
  // decoded.
  __device__ void Multiply(const uint32_t* tiles, int k, int next,
                           float (&acc)[Shape::kColumnTiles][kGroups][4]) {
    uint2 b[kGroups];
    if constexpr (!kPrefetch) LoadRows(k);
#pragma unroll
    for (int q = 0; q < kGroups; ++q) b[q] = rows_[q];
    if constexpr (kPrefetch) LoadRows(next);
#pragma unroll
    for (int i = 0; i < Shape::kColumnTiles; ++i) {
      uint32_t a[4];
      Exl3DecodeFragment<kCodebook, kK2>(words_, tiles + i * Shape::kTileWords, a);
#pragma unroll
      for (int q = 0; q < kGroups; ++q) Exl3Mma(acc[i][q], a, b[q]);
    }
  }

  // Taller tiles have no registers for it, and find their rows in L1 where other warps left them.
  static constexpr bool kPrefetch = kGroups <= 4;

  Exl3LaneWords<kK2> words_;
  int lane_;
  uint32_t* ring_;
  int64_t row_words_;
  const uint32_t* trellis_;
  const uint2* xh_base_;
  int first_group_, last_group_, group_stride_;
  int xh_[kPrefetch ? kGroups : 1];  // offsets of the groups' rows, where there are registers
  uint2 rows_[kGroups];
};

// total [rows, 128] <- total + acc of one warp, or acc itself where the split begins.
template <int kColumnTiles, int kGroups, int kStride>
__device__ void Exl3Fold(const float (&acc)[kColumnTiles][kGroups][4], bool begins, int column,
                         int lane, float* total) {
  const int g = lane / 4;
  const int t = lane % 4;
#pragma unroll
  for (int i = 0; i < kColumnTiles; ++i) {
#pragma unroll
    for (int q = 0; q < kGroups; ++q) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float* at =
            total + (8 * q + 2 * t + (c & 1)) * kStride + 16 * (column + i) + g + 8 * (c >> 1);
        *at = begins ? acc[i][q][c] : *at + acc[i][q][c];
      }
    }
  }
}

// y <- ((total H) * svh) + bias for the block's rows; a warp takes a row, a lane 4 columns.
template <int kStride>
__device__ void Exl3Output(const Exl3KernelPart& part, int block, int first_row, int rows,
                           const float* total, int warp, int warps, int lane) {
  const int64_t column = part.first_column + static_cast<int64_t>(block) * kExl3BlockColumns;
  const int valid = min(kExl3BlockColumns, part.columns - block * kExl3BlockColumns);
  for (int row = warp; row < rows; row += warps) {
    const float4 in = *reinterpret_cast<const float4*>(total + row * kStride + 4 * lane);
    float v[4] = {in.x, in.y, in.z, in.w};
    WarpHadamard128(v, lane);
    float* y = part.y + (first_row + row) * part.y_stride + block * kExl3BlockColumns;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int c = 4 * lane + e;
      if (c >= valid) continue;
      const float scaled = v[e] * __half2float(__ushort_as_half(part.svh[column + c]));
      y[c] = part.bias != nullptr ? scaled + part.bias[column + c] : scaled;
    }
  }
}

template <int kCodebook, int kK2, int kGroups>
__global__ void __launch_bounds__((Exl3Shape<kK2, kGroups>::kThreads),
                                  (Exl3Shape<kK2, kGroups>::kBlocksPerSm))
    Exl3LinearKernel(const __grid_constant__ Exl3KernelParts parts) {
  using Shape = Exl3Shape<kK2, kGroups>;
  extern __shared__ __align__(16) float shared[];
  float* total = shared;
  uint32_t* ring = reinterpret_cast<uint32_t*>(shared + Shape::kRows * Shape::kTotalStride);
  __shared__ int arrived;

  int index = 0;
  while (index + 1 < parts.count &&
         static_cast<int>(blockIdx.x) >= parts.part[index + 1].first_block) {
    ++index;
  }
  const Exl3KernelPart& part = parts.part[index];
  const int local = static_cast<int>(blockIdx.x) - part.first_block;
  const int block = local % part.blocks;
  const int split = local / part.blocks;
  const int tile = static_cast<int>(blockIdx.y);
  const int first_row = tile * Shape::kRows;
  const int rows = min(Shape::kRows, parts.rows - first_row);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int slot = warp / Shape::kColumnWarps;
  const int column = warp % Shape::kColumnWarps * Shape::kColumnTiles;

  Exl3Range<kCodebook, kK2, kGroups> range(
      parts, part, static_cast<int>(part.first_column / 16) + block * 8 + column, tile * kGroups,
      lane, ring + warp * Shape::kStages * Shape::kStageWords);
  const int ranges = part.splits * part.warps;
  for (int first = 0; first < part.warps; first += Shape::kSlots) {
    float acc[Shape::kColumnTiles][kGroups][4];
    const int mine = split * part.warps + first + slot;
    const bool has_range = first + slot < part.warps;
    if (has_range) {
      range.Run(static_cast<int>(static_cast<int64_t>(parts.k_tiles) * mine / ranges),
                static_cast<int>(static_cast<int64_t>(parts.k_tiles) * (mine + 1) / ranges), acc);
    }
    for (int turn = 0; turn < Shape::kSlots && first + turn < part.warps; ++turn) {
      if (turn == slot) {
        Exl3Fold<Shape::kColumnTiles, kGroups, Shape::kTotalStride>(acc, first + turn == 0, column,
                                                                    lane, total);
      }
      __syncthreads();
    }
  }

  if (part.splits > 1) {
    // [column block, row tile][split][rows][128]: a row tile's sums of one split lie together.
    const int64_t cell = static_cast<int64_t>(tile) * part.blocks + block;
    constexpr int kCell = Shape::kRows * kExl3BlockColumns;
    float* partials = parts.partials + part.first_partial + cell * part.splits * kCell;
    const int elements = rows * kExl3BlockColumns;
    for (int e = static_cast<int>(threadIdx.x); e < elements; e += Shape::kThreads) {
      partials[static_cast<int64_t>(split) * kCell + e] =
          total[e / kExl3BlockColumns * Shape::kTotalStride + e % kExl3BlockColumns];
    }
    // The partial is visible before the arrival is counted; the last to arrive sees all of them.
    __threadfence();
    __syncthreads();
    int32_t* counter = parts.counters + part.first_counter + cell;
    if (threadIdx.x == 0) arrived = atomicAdd(counter, 1);
    __syncthreads();
    if (arrived != part.splits - 1) return;
    __threadfence();
    for (int e = static_cast<int>(threadIdx.x); e < elements; e += Shape::kThreads) {
      float sum = __ldcg(partials + e);
      for (int s = 1; s < part.splits; ++s) {
        sum += __ldcg(partials + static_cast<int64_t>(s) * kCell + e);
      }
      total[e / kExl3BlockColumns * Shape::kTotalStride + e % kExl3BlockColumns] = sum;
    }
    if (threadIdx.x == 0) *counter = 0;  // for the next launch on this stream
    __syncthreads();
  }
  Exl3Output<Shape::kTotalStride>(part, block, first_row, rows, total, warp, Shape::kWarps, lane);
}

template <int kCodebook, int kK2, int kGroups>
cudaError_t LaunchExl3Kernel(const Exl3KernelParts& parts, dim3 grid, cudaStream_t stream) {
  using Shape = Exl3Shape<kK2, kGroups>;
  const auto kernel = &Exl3LinearKernel<kCodebook, kK2, kGroups>;
  const cudaError_t error = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(Shape::kSharedBytes));
  if (error != cudaSuccess) return error;
  kernel<<<grid, Shape::kThreads, Shape::kSharedBytes, stream>>>(parts);
  return cudaGetLastError();
}

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_EXL3_EXL3_LINEAR_CUH_
