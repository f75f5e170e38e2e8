// SPDX-License-Identifier: Apache-2.0
// The EXL3 tile format, one tile at a time and one bit at a time: which stream bits make a state,
// which fp16 value a state stands for, which element of the tile a position is, and the inverse.
// This is the definition (clause decode-exact); fast decoders elsewhere are compared with it. Not a
// quantizer: it packs states, it does not look for good ones.
//
// A tile is 8 * k2 words as the int16 tensor stores them, k2 = twice the bits a weight. Positions
// p = 0..255 follow the bit stream, which is a ring.
#ifndef HALLMARK_ENGINE_BACKEND_EXL3_CODEC_H_
#define HALLMARK_ENGINE_BACKEND_EXL3_CODEC_H_

#include <cstdint>
#include <span>

#include "engine/format/linear.h"

namespace hallmark {

inline constexpr int kTileSide = 16;
inline constexpr int kTileWeights = 256;
// Words of a tile at the widest rate (8 bits).
inline constexpr int kMaxTileWords = 128;
// The Hadamard block: K and N are multiples of it.
inline constexpr int kExl3Block = 128;

struct Exl3Rate {
  Codebook codebook;
  int k2;
};
// The 27 pairs of codebook and width that exist: 1..8 bits for each codebook, and 1.5, 2.5 and 3.5
// bits for mul1.
std::span<const Exl3Rate> AllExl3Rates();

constexpr int TileWords(int k2) { return 8 * k2; }

// Bits that position p adds to the stream. Half widths give the extra bit to odd positions.
constexpr int OwnBits(int k2, int p) { return k2 / 2 + ((k2 & 1) & (p & 1)); }

// Stream offset just past position p's bits: the sum of OwnBits over 0..p.
constexpr int EndBit(int k2, int p) { return ((p + 1) * k2 - ((k2 & 1) & ((p + 1) & 1))) / 2; }

struct TileElement {
  int row;     // input index in the tile
  int column;  // output index in the tile
};
constexpr TileElement ElementOf(int p) {
  const int lane = p / 8;
  const int j = p % 8;
  return {2 * (lane % 4) + (j & 1) + 8 * ((j >> 1) & 1), lane / 4 + 8 * (j >> 2)};
}

// The fp16 bits that a state stands for.
uint16_t CodebookValue(Codebook codebook, uint16_t state);

// The 16 stream bits that end at EndBit(k2, p), first bit most significant, read around the ring.
uint16_t StateAt(const uint16_t* words, int k2, int p);

// values [16 inputs, 16 outputs] as fp16 bits.
void DecodeTile(const uint16_t* words, Exl3Rate rate, uint16_t* values);

// Whether 256 states form a ring: each one's high 16 - OwnBits bits repeat its predecessor's low
// bits, and position 0 follows position 255.
bool IsRing(std::span<const uint16_t, kTileWeights> states, int k2);

// The inverse of StateAt for states that form a ring. words [8 * k2].
void PackStates(std::span<const uint16_t, kTileWeights> states, int k2, uint16_t* words);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_EXL3_CODEC_H_
