// SPDX-License-Identifier: Apache-2.0
// Tiles of attention in shared memory: their swizzle, how they are filled from pages, and the
// matrix instructions that read them. Needs sm_80.
//
// A tile is rows of bf16 in 16-byte pieces; piece p of row r lies at p ^ (r % 8), so that the eight
// rows that one ldmatrix phase reads at one p fall into different banks. Rows have a multiple of 8
// pieces.
#ifndef HALLMARK_KERNELS_MIXERS_ATTENTION_TILE_CUH_
#define HALLMARK_KERNELS_MIXERS_ATTENTION_TILE_CUH_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/mixers/attention_shape.h"

namespace hallmark {

// Byte offset of a piece inside a tile whose rows hold `pieces` pieces.
template <int pieces>
__device__ inline uint32_t PieceOffset(int row, int piece) {
  return static_cast<uint32_t>((row * pieces + (piece ^ (row & 7))) * 16);
}

__device__ inline uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Copies 16 bytes, or writes 16 zeros and reads nothing.
__device__ inline void CopyPieceAsync(uint32_t shared, const std::byte* source, bool wanted) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared), "l"(source),
               "r"(wanted ? 16 : 0)
               : "memory");
}
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
// Waits until at most one group, the last committed, is under way.
__device__ inline void WaitForAllButOneGroup() {
  asm volatile("cp.async.wait_group 1;\n" ::: "memory");
}

// Four 8x8 matrices; lane l gives the address of row l % 8 of matrix l / 8, and holds of each its
// row l / 4, columns 2 (l % 4) and the next.
__device__ inline void LoadMatrices(uint32_t address, uint32_t (&matrix)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
               : "r"(address)
               : "memory");
}
// The same, transposed: lane l holds rows 2 (l % 4) and the next of column l / 4.
__device__ inline void LoadMatricesTransposed(uint32_t address, uint32_t (&matrix)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
               : "r"(address)
               : "memory");
}

// c += a b for a [16, 16] by rows, b [16, 8] by columns. With g = lane / 4 and t = lane % 4, c
// holds (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
__device__ inline void MultiplyAdd(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                   uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// fp8 e4m3 to bf16, exactly: the bits stand for an fp32 value 2^120 times smaller, subnormals too.
__device__ inline uint32_t Fp8ToBf16(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7Fu;
  const float value = std::bit_cast<float>(magnitude << 20) * 0x1p120f;
  const uint32_t wide = magnitude == 0x7Fu ? 0x7FC0u : std::bit_cast<uint32_t>(value) >> 16;
  return wide | (bits & 0x80u) << 8;
}
// Bytes `first` and `first + 1` of a word, the first in the low half.
__device__ inline uint32_t Fp8PairToBf16(uint32_t word, int first) {
  return Fp8ToBf16(word >> (8 * first) & 0xFFu) | Fp8ToBf16(word >> (8 * first + 8) & 0xFFu) << 16;
}

// Fills a tile of `rows` rows of head_dim channels: the first `stored` from memory, row_bytes
// apart, the others with zeros. All `threads` threads of the block call. bf16 is copied
// asynchronously (the caller commits and waits), fp8 is widened on the way and is there after the
// next barrier.
template <int head_dim, KvFormat format, int rows, int threads>
__device__ inline void FillTile(std::byte* tile, const std::byte* source, int64_t row_bytes,
                                int stored) {
  constexpr int kPieces = head_dim / 8;
  if constexpr (format == KvFormat::kBf16) {
    const uint32_t base = SharedAddress(tile);
    static_assert(rows * kPieces % threads == 0);
#pragma unroll 4
    for (int i = 0; i < rows * kPieces / threads; ++i) {
      const int index = i * threads + static_cast<int>(threadIdx.x);
      const int row = index / kPieces;
      const int piece = index % kPieces;
      CopyPieceAsync(base + PieceOffset<kPieces>(row, piece), source + row * row_bytes + piece * 16,
                     row < stored);
    }
  } else {
    constexpr int kLoads = head_dim / 16;  // 16 bytes each: two pieces
    constexpr int kEach = rows * kLoads / threads;
    constexpr int kAtOnce = 4;
    static_assert(rows * kLoads % threads == 0 && kEach % kAtOnce == 0);
#pragma unroll 1
    for (int first = 0; first < kEach; first += kAtOnce) {
      uint4 bytes[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int index = (first + i) * threads + static_cast<int>(threadIdx.x);
        const int row = index / kLoads;
        bytes[i] = make_uint4(0, 0, 0, 0);
        if (row < stored) {
          bytes[i] = *reinterpret_cast<const uint4*>(source + row * row_bytes +
                                                     int64_t{index % kLoads} * 16);
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int index = (first + i) * threads + static_cast<int>(threadIdx.x);
        const int row = index / kLoads;
        const int piece = index % kLoads * 2;
        const uint4 x = bytes[i];
        *reinterpret_cast<uint4*>(tile + PieceOffset<kPieces>(row, piece)) =
            make_uint4(Fp8PairToBf16(x.x, 0), Fp8PairToBf16(x.x, 2), Fp8PairToBf16(x.y, 0),
                       Fp8PairToBf16(x.y, 2));
        *reinterpret_cast<uint4*>(tile + PieceOffset<kPieces>(row, piece + 1)) =
            make_uint4(Fp8PairToBf16(x.z, 0), Fp8PairToBf16(x.z, 2), Fp8PairToBf16(x.w, 0),
                       Fp8PairToBf16(x.w, 2));
      }
    }
  }
}

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_MIXERS_ATTENTION_TILE_CUH_
