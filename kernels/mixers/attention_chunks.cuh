// SPDX-License-Identifier: Apache-2.0
// The kernel that runs one chunk of 512 keys for some query vectors of one kv head, from the
// chunk's own start. Order of sums: attention.h.
#ifndef HALLMARK_KERNELS_MIXERS_ATTENTION_CHUNKS_CUH_
#define HALLMARK_KERNELS_MIXERS_ATTENTION_CHUNKS_CUH_

#include <cuda_bf16.h>

#include <limits>

#include "engine/base/elementary_inline.h"
#include "engine/base/float_types.h"
#include "kernels/mixers/attention.h"
#include "kernels/mixers/attention_tile.cuh"

namespace hallmark {

// The workspace: slot 0 is the running total, slot 1 + c chunk c of the segment. Vector
// row * heads + head of a slot; vectors = rows * heads.
struct AttentionPartials {
  float* values = nullptr;  // [slots, vectors, head_dim]
  float* max = nullptr;     // [slots, vectors]
  float* sum = nullptr;     // [slots, vectors]
};

struct AttentionCall {
  AttentionPartials partials;
  const float* q = nullptr;
  KvPlace kv;
  int64_t first_chunk = 0;  // of the segment
  int rows = 0;
  int heads = 0;
  int kv_heads = 0;
  float scale = 0.0f;
};

inline constexpr int kAttentionSlices = 4;  // warps of a block
inline constexpr int kAttentionThreads = 32 * kAttentionSlices;

// Shared memory of a block with `tiles` tiles of 16 query vectors, in bytes.
template <int head_dim, int tiles>
struct AttentionChunkLayout {
  static constexpr int kVectors = 16 * tiles;
  static constexpr int kTileKeys = static_cast<int>(kAttentionTileKeys);
  static constexpr int kKeys = kVectors * head_dim * 2;  // queries come first
  static constexpr int kValues = kKeys + kTileKeys * head_dim * 2;
  static constexpr int kProbabilities = kValues + kTileKeys * head_dim * 2;
  static constexpr int kMax = kProbabilities + kVectors * kTileKeys * 2;
  static constexpr int kSum = kMax + kAttentionSlices * kVectors * 4;
  static constexpr int kBytes = kSum + kAttentionSlices * kVectors * 4;
  static_assert(kBytes <= 101376);
};

// Grid (groups of 16 * tiles query vectors, kv heads, chunks of the segment). The vectors of a kv
// head are row by row its heads / kv_heads query heads. All four warps work on the same vectors:
// warp s has the scores of keys 16 s .. 16 s + 15 of a tile, and a quarter of the channels of the
// values. A vector's bits do not depend on `tiles` nor on its place in the group.
template <int head_dim, KvFormat format, int tiles>
__global__ void __launch_bounds__(kAttentionThreads) AttentionChunksKernel(AttentionCall call) {
  using Layout = AttentionChunkLayout<head_dim, tiles>;
  constexpr int kPieces = head_dim / 8;
  constexpr int kKeyPieces = Layout::kTileKeys / 8;
  constexpr int kTileKeys = Layout::kTileKeys;
  constexpr int kChannels = head_dim / kAttentionSlices;  // of this warp's values
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  constexpr unsigned kAllLanes = 0xFFFFFFFFu;
  extern __shared__ uint4 memory[];  // 16-byte aligned
  std::byte* const queries = reinterpret_cast<std::byte*>(memory);
  std::byte* const keys = queries + Layout::kKeys;
  std::byte* const values = queries + Layout::kValues;
  std::byte* const probabilities = queries + Layout::kProbabilities;
  float* const slice_max = reinterpret_cast<float*>(queries + Layout::kMax);  // [slices, kVectors]
  float* const slice_sum = reinterpret_cast<float*>(queries + Layout::kSum);  // [slices, kVectors]

  const int ratio = call.heads / call.kv_heads;
  const int vectors = call.rows * ratio;
  const int first_vector = static_cast<int>(blockIdx.x) * Layout::kVectors;
  const int last_vector = min(vectors, first_vector + Layout::kVectors) - 1;
  const int kv_head = static_cast<int>(blockIdx.y);
  const int64_t position = *call.kv.position;
  const int64_t start = (call.first_chunk + blockIdx.z) * kAttentionChunkKeys;
  const int64_t seen = position + last_vector / ratio + 1 - start;  // keys, by the last vector
  if (seen <= 0) return;  // the merge reads no chunk that its row does not see
  const int key_tiles =
      static_cast<int>((min(seen, kAttentionChunkKeys) + kTileKeys - 1) / kTileKeys);
  const int64_t stored = position + call.rows - start;  // keys of this chunk and beyond

  const int slice = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4;
  const int t = lane % 4;

  const int64_t row_bytes = int64_t{call.kv_heads} * head_dim * (format == KvFormat::kBf16 ? 2 : 1);
  // A tile lies inside one page: 64 divides 256.
  auto fill = [&](std::byte* tile, bool is_value, int key_tile) {
    const int64_t at = start + key_tile * kTileKeys;
    const int64_t slot = (is_value ? kPagePositions : 0) + at % kPagePositions;
    const std::byte* source = call.kv.pages[at / kPagePositions] + call.kv.offset +
                              slot * row_bytes + kv_head * (row_bytes / call.kv_heads);
    FillTile<head_dim, format, kTileKeys, kAttentionThreads>(
        tile, source, row_bytes,
        static_cast<int>(min(stored - key_tile * kTileKeys, kAttentionTileKeys)));
    CommitCopies();
  };

  fill(keys, false, 0);
  for (int i = static_cast<int>(threadIdx.x); i < Layout::kVectors * kPieces;
       i += kAttentionThreads) {
    const int vector = first_vector + i / kPieces;
    const int piece = i % kPieces;
    uint4 packed = make_uint4(0, 0, 0, 0);
    if (vector <= last_vector) {
      const int64_t head = int64_t{vector / ratio} * call.heads + kv_head * ratio + vector % ratio;
      const float4* x = reinterpret_cast<const float4*>(call.q + head * head_dim + piece * 8);
      auto pair = [](float low, float high) {
        return uint32_t{FloatToBf16(low)} | uint32_t{FloatToBf16(high)} << 16;
      };
      const float4 a = x[0];
      const float4 b = x[1];
      packed = make_uint4(pair(a.x, a.y), pair(a.z, a.w), pair(b.x, b.y), pair(b.z, b.w));
    }
    *reinterpret_cast<uint4*>(queries + PieceOffset<kPieces>(i / kPieces, piece)) = packed;
  }

  // Of vectors g and g + 8 of each tile: the last key of the chunk it sees (negative: none), its
  // running maximum and sum (all warps and all four lanes of a vector hold the same).
  int last_key[tiles][2];
  float max[tiles][2];
  float sum[tiles][2];
#pragma unroll
  for (int m = 0; m < tiles; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int vector = first_vector + 16 * m + 8 * h + g;
      last_key[m][h] = -1;
      if (vector <= last_vector) {
        last_key[m][h] =
            static_cast<int>(min(position + vector / ratio - start, kAttentionChunkKeys - 1));
      }
      max[m][h] = kNone;
      sum[m][h] = 0.0f;
    }
  }
  float value[tiles][kChannels / 8][4] = {};

  // This lane's rows and pieces in the matrices that it addresses (see LoadMatrices).
  const int lane8 = lane & 7;
  const int a_row = lane8 + ((lane >> 3) & 1) * 8;  // and piece + lane / 16
  const int key_row = 16 * slice + (lane >> 4) * 8 + lane8;
  const int key_piece = (lane >> 3) & 1;
  const uint32_t query_base = SharedAddress(queries);
  const uint32_t key_base = SharedAddress(keys);
  const uint32_t value_base = SharedAddress(values);
  const uint32_t probability_base = SharedAddress(probabilities);

  for (int key_tile = 0; key_tile < key_tiles; ++key_tile) {
    fill(values, true, key_tile);
    WaitForAllButOneGroup();
    __syncthreads();  // keys and, the first time, queries are there

    float score[tiles][2][4] = {};  // keys 8 n + 2t and the next of this warp's 16
#pragma unroll 4
    for (int step = 0; step < head_dim / 16; ++step) {
      uint32_t b[4];
      LoadMatrices(key_base + PieceOffset<kPieces>(key_row, 2 * step + key_piece), b);
#pragma unroll
      for (int m = 0; m < tiles; ++m) {
        uint32_t a[4];
        LoadMatrices(query_base + PieceOffset<kPieces>(16 * m + a_row, 2 * step + (lane >> 4)), a);
        MultiplyAdd(score[m][0], a, b[0], b[1]);
        MultiplyAdd(score[m][1], a, b[2], b[3]);
      }
    }

    const int first_key = key_tile * kTileKeys + 16 * slice + 2 * t;  // inside the chunk
#pragma unroll
    for (int m = 0; m < tiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float highest = kNone;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            float& x = score[m][n][2 * h + i];
            x = first_key + 8 * n + i <= last_key[m][h] ? x * call.scale : kNone;
            highest = fmaxf(highest, x);
          }
        }
        highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, 1));
        highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, 2));
        if (t == 0) slice_max[slice * Layout::kVectors + 16 * m + 8 * h + g] = highest;
      }
    }
    __syncthreads();  // maxima are there; nobody reads these keys any more
    if (key_tile + 1 < key_tiles) {
      fill(keys, false, key_tile + 1);
    } else {
      CommitCopies();  // an empty group, so that the wait below means the values
    }

#pragma unroll
    for (int m = 0; m < tiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int vector = 16 * m + 8 * h + g;
        float highest = max[m][h];
#pragma unroll
        for (int s = 0; s < kAttentionSlices; ++s) {
          highest = fmaxf(highest, slice_max[s * Layout::kVectors + vector]);
        }
        // Without a visible key so far, exp(-inf - 0) = 0 keeps sum and values at zero.
        const float base = highest == kNone ? 0.0f : highest;
        const float keep = shared::Exp(max[m][h] - base);
        max[m][h] = highest;
        float part[2];
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const float low = shared::Exp(score[m][n][2 * h] - base);
          const float high = shared::Exp(score[m][n][2 * h + 1] - base);
          part[n] = low + high;
          const uint32_t offset = PieceOffset<kKeyPieces>(vector, 2 * slice + n) + 4 * t;
          *reinterpret_cast<__nv_bfloat162*>(probabilities + offset) =
              __floats2bfloat162_rn(low, high);
        }
        float total = part[0] + part[1];
        total += __shfl_xor_sync(kAllLanes, total, 1);
        total += __shfl_xor_sync(kAllLanes, total, 2);
        if (t == 0) slice_sum[slice * Layout::kVectors + vector] = total;
        sum[m][h] *= keep;
#pragma unroll
        for (int n = 0; n < kChannels / 8; ++n) {
          value[m][n][2 * h] *= keep;
          value[m][n][2 * h + 1] *= keep;
        }
      }
    }
    WaitForAllButOneGroup();
    __syncthreads();  // values, probabilities and sums are there

#pragma unroll
    for (int m = 0; m < tiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float* part = slice_sum + 16 * m + 8 * h + g;
        sum[m][h] += ((part[0] + part[Layout::kVectors]) + part[2 * Layout::kVectors]) +
                     part[3 * Layout::kVectors];
      }
    }
#pragma unroll 1
    for (int step = 0; step < kTileKeys / 16; ++step) {
      uint32_t a[tiles][4];
#pragma unroll
      for (int m = 0; m < tiles; ++m) {
        LoadMatrices(
            probability_base + PieceOffset<kKeyPieces>(16 * m + a_row, 2 * step + (lane >> 4)),
            a[m]);
      }
#pragma unroll
      for (int pair = 0; pair < kChannels / 16; ++pair) {
        uint32_t b[4];
        const int piece = slice * (kChannels / 8) + 2 * pair + (lane >> 4);
        LoadMatricesTransposed(value_base + PieceOffset<kPieces>(16 * step + a_row, piece), b);
#pragma unroll
        for (int m = 0; m < tiles; ++m) {
          MultiplyAdd(value[m][2 * pair], a[m], b[0], b[1]);
          MultiplyAdd(value[m][2 * pair + 1], a[m], b[2], b[3]);
        }
      }
    }
    __syncthreads();  // nobody reads these values, probabilities and sums any more
  }

#pragma unroll
  for (int m = 0; m < tiles; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int vector = first_vector + 16 * m + 8 * h + g;
      if (vector > last_vector) continue;
      const int64_t place = (int64_t{1} + blockIdx.z) * call.rows * call.heads +
                            int64_t{vector / ratio} * call.heads + kv_head * ratio + vector % ratio;
      if (slice == 0 && t == 0) {
        call.partials.max[place] = max[m][h];
        call.partials.sum[place] = sum[m][h];
      }
      float* out = call.partials.values + place * head_dim + slice * kChannels + 2 * t;
#pragma unroll
      for (int n = 0; n < kChannels / 8; ++n) {
        // Adding zero makes -0 a zero: the sign of a zero could tell how many masked keys, whose
        // products are zeros, were added.
        *reinterpret_cast<float2*>(out + 8 * n) =
            make_float2(value[m][n][2 * h] + 0.0f, value[m][n][2 * h + 1] + 0.0f);
      }
    }
  }
}

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_MIXERS_ATTENTION_CHUNKS_CUH_
