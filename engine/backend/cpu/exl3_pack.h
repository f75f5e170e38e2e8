// SPDX-License-Identifier: Apache-2.0
// How tiles are stored for each tier. A tile of width k2 is 8 segments of 16 * k2 bits, one for
// each column c % 8: a row of the tile needs the same bit offset of all 8 segments, so a decoder
// wants them side by side. Every layout is a permutation of the tile's 16-bit words and as large as
// the checkpoint's; no bits are repeated: the 16 bits before a segment are the end of its left
// neighbour, around the ring.
//
// Plain types only: the tables that name these functions are compiled for wide instruction sets.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_EXL3_PACK_H_
#define HALLMARK_ENGINE_BACKEND_CPU_EXL3_PACK_H_

#include <stdint.h>

namespace hallmark {

// 8 tiles as they are.
void PackWholeTiles(const uint16_t* const* tiles, int k2, uint8_t* packed);

// 8 x 2 tiles, two neighbours of one input tile interleaved: [tile pair][k2][tile][segment] words,
// word i of a segment being its stream bits 16 i ... 16 i + 15, first bit on top.
void PackWordColumns(const uint16_t* const* tiles, int k2, uint8_t* packed);

// 8 x 2 tiles, each [k2 / 4][segment] 64-bit groups of the stream, first bit on top, then the
// remaining k2 % 4 words [segment][k2 % 4], last word of a segment first.
void PackQuadColumns(const uint16_t* const* tiles, int k2, uint8_t* packed);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_EXL3_PACK_H_
