// SPDX-License-Identifier: Apache-2.0
// One lane's 8 weights of an EXL3 tile: which words of the tile hold its 8 overlapping 16-bit
// windows, and the fp16 value of a window under each codebook. The definition is
// engine/backend/exl3_codec.h (clause decode-exact).
//
// Positions p = 8 lane + j. A lane's last window ends at stream bit 4 (lane + 1) k2 whatever the
// width, and window j ends Exl3WindowOffset(k2, j) bits before that: constants.
#ifndef HALLMARK_KERNELS_EXL3_DECODE_CUH_
#define HALLMARK_KERNELS_EXL3_DECODE_CUH_

#include <cuda_fp16.h>

#include <cstdint>

namespace hallmark {

constexpr int Exl3EndBit(int k2, int p) { return ((p + 1) * k2 - ((k2 & 1) & ((p + 1) & 1))) / 2; }
constexpr int Exl3WindowOffset(int k2, int j) { return Exl3EndBit(k2, 7) - Exl3EndBit(k2, j); }
// Bits from the first window's start to the lane's end, and 32-bit pieces that hold them.
constexpr int Exl3LaneSpan(int k2) { return Exl3WindowOffset(k2, 0) + 16; }
constexpr int Exl3LanePieces(int k2) { return (Exl3LaneSpan(k2) + 31) / 32; }
constexpr int Exl3TileWords(int k2) { return 4 * k2; }  // of 32 bits

// Where a lane's pieces lie: piece i is the 32 stream bits that end at bit 4 (lane + 1) k2 - 32 i.
template <int kK2>
struct Exl3LaneWords {
  static constexpr int kPieces = Exl3LanePieces(kK2);
  // Every lane's end is a multiple of 32 for these: no word needs shifting.
  static constexpr bool kAligned = kK2 % 8 == 0;
  static constexpr int kWords = kPieces + (kAligned ? 0 : 1);
  int index[kWords];  // in the tile; the ring is closed by wrapping
  int shift;          // bits of the last word that belong to piece 0

  __device__ explicit Exl3LaneWords(int lane) {
    constexpr int kTile = Exl3TileWords(kK2);
    const int end = 4 * (lane + 1) * kK2;
    shift = end % 32;
    // Aligned: words end/32 - 1, - 2, ...; else the partly used word end/32 comes first.
    const int first = end / 32 - (kAligned ? 1 : 0);
#pragma unroll
    for (int i = 0; i < kWords; ++i) index[i] = (first - i + kTile) % kTile;
  }

  // piece[0..kPieces) from the tile's words.
  __device__ void Load(const uint32_t* tile, uint32_t (&piece)[kPieces]) const {
    uint32_t word[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) word[i] = tile[index[i]];
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      piece[i] = kAligned ? word[i] : __funnelshift_l(word[i], word[i + (kAligned ? 0 : 1)], shift);
    }
  }
};

// State j of a lane: 16 bits.
template <int kK2, int kJ>
__device__ __forceinline__ uint32_t Exl3State(const uint32_t (&piece)[Exl3LanePieces(kK2)]) {
  constexpr int kOffset = Exl3WindowOffset(kK2, kJ);
  constexpr int kPiece = kOffset / 32;
  constexpr int kShift = kOffset % 32;
  if constexpr (kShift + 16 <= 32) {
    return (piece[kPiece] >> kShift) & 0xFFFFu;
  } else {
    return __funnelshift_r(piece[kPiece], piece[kPiece + 1], kShift) & 0xFFFFu;
  }
}

__device__ __forceinline__ uint32_t Exl3HalfPairBits(__half2 pair) {
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}
__device__ __forceinline__ __half2 Exl3HalfPair(uint32_t bits) {
  __half2 pair;
  memcpy(&pair, &bits, sizeof pair);
  return pair;
}

// Two fp16 values, the first state's in the low half.
template <int kCodebook>
__device__ __forceinline__ uint32_t Exl3ValuePair(uint32_t first, uint32_t second) {
  if constexpr (kCodebook == 2) {  // mul1: byte sum S, fp16 1024 + S, one rounding of h * a + b
    const uint32_t x = first * 0x83DCD12Du;
    const uint32_t y = second * 0x83DCD12Du;
    const uint32_t sums =
        __byte_perm(__dp4a(x, 0x01010101u, 0x6400u), __dp4a(y, 0x01010101u, 0x6400u), 0x5410);
    return Exl3HalfPairBits(
        __hfma2(Exl3HalfPair(sums), Exl3HalfPair(0x1EEE1EEEu), Exl3HalfPair(0xC931C931u)));
  } else {
    uint32_t x = kCodebook == 0 ? first * 89226354u + 64248484u : first * 0xCBAC1FEDu;
    uint32_t y = kCodebook == 0 ? second * 89226354u + 64248484u : second * 0xCBAC1FEDu;
    x = (x & 0x8FFF8FFFu) ^ 0x3B603B60u;
    y = (y & 0x8FFF8FFFu) ^ 0x3B603B60u;
    const uint32_t low = __byte_perm(x, y, 0x5410);
    const uint32_t high = __byte_perm(x, y, 0x7632);
    return Exl3HalfPairBits(__hadd2_rn(Exl3HalfPair(low), Exl3HalfPair(high)));
  }
}

// The tile as A fragment of mma.m16n8k16 with its 16 columns as rows: a[0] (column g, inputs 2t,
// 2t + 1), a[1] (g + 8), a[2] (g, inputs + 8), a[3] (g + 8, inputs + 8); g = lane / 4, t = lane
// % 4.
template <int kCodebook, int kK2>
__device__ __forceinline__ void Exl3DecodeFragment(const Exl3LaneWords<kK2>& words,
                                                   const uint32_t* tile, uint32_t (&a)[4]) {
  uint32_t piece[Exl3LanePieces(kK2)];
  words.Load(tile, piece);
  a[0] = Exl3ValuePair<kCodebook>(Exl3State<kK2, 0>(piece), Exl3State<kK2, 1>(piece));
  a[2] = Exl3ValuePair<kCodebook>(Exl3State<kK2, 2>(piece), Exl3State<kK2, 3>(piece));
  a[1] = Exl3ValuePair<kCodebook>(Exl3State<kK2, 4>(piece), Exl3State<kK2, 5>(piece));
  a[3] = Exl3ValuePair<kCodebook>(Exl3State<kK2, 6>(piece), Exl3State<kK2, 7>(piece));
}

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_EXL3_DECODE_CUH_
