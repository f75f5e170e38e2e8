// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/exl3_pack.h"

#include <cstring>

namespace hallmark {
namespace {

constexpr int kSegments = 8;
constexpr int kBlockTiles = 8;

// Stream bits 16 i ... 16 i + 15 of a segment: the words of each pair are stored low half first.
uint16_t SegmentWord(const uint16_t* tile, int k2, int segment, int i) {
  return tile[(segment * k2 + i) ^ 1];
}

void Put(uint8_t*& packed, uint16_t word) {
  std::memcpy(packed, &word, sizeof(word));
  packed += sizeof(word);
}

}  // namespace

void PackWholeTiles(const uint16_t* const* tiles, int k2, uint8_t* packed) {
  const size_t bytes = static_cast<size_t>(16 * k2);
  for (int t = 0; t < kBlockTiles; ++t) {
    std::memcpy(packed + static_cast<size_t>(t) * bytes, tiles[t], bytes);
  }
}

void PackWordColumns(const uint16_t* const* tiles, int k2, uint8_t* packed) {
  for (int t = 0; t < kBlockTiles; ++t) {
    for (int i = 0; i < k2; ++i) {
      for (int side = 0; side < 2; ++side) {
        for (int segment = 0; segment < kSegments; ++segment) {
          Put(packed, SegmentWord(tiles[2 * t + side], k2, segment, i));
        }
      }
    }
  }
}

void PackQuadColumns(const uint16_t* const* tiles, int k2, uint8_t* packed) {
  for (int t = 0; t < 2 * kBlockTiles; ++t) {
    for (int first = 0; first < k2; first += 4) {
      const int last = first + 4 < k2 ? first + 4 : k2;
      for (int segment = 0; segment < kSegments; ++segment) {
        for (int i = last - 1; i >= first; --i) Put(packed, SegmentWord(tiles[t], k2, segment, i));
      }
    }
  }
}

}  // namespace hallmark
