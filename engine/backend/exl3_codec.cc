// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/exl3_codec.h"

#include <algorithm>
#include <array>

#include "engine/base/float_types.h"

namespace hallmark {
namespace {

constexpr std::array<Exl3Rate, 27> MakeRates() {
  std::array<Exl3Rate, 27> rates{};
  size_t count = 0;
  for (const Codebook codebook : {Codebook::k3inst, Codebook::kMcg, Codebook::kMul1}) {
    for (int k2 = 2; k2 <= 16; ++k2) {
      const bool half = k2 % 2 != 0;
      if (half && (codebook != Codebook::kMul1 || k2 > 7)) continue;
      rates[count++] = {codebook, k2};
    }
  }
  return rates;
}
constexpr std::array<Exl3Rate, 27> kRates = MakeRates();

// Where stream bit i lives: pairs of words are little-endian 32-bit groups, read from their top
// bit.
constexpr int WordOf(int i) { return 2 * (i / 32) + (i % 32 < 16 ? 1 : 0); }
constexpr int ShiftOf(int i) { return 15 - i % 16; }

// Both halves are finite with magnitude in [0.125, 2), so their sum is exact in fp32 and rounds
// once.
uint16_t SumOfHalves(uint32_t x) {
  x = (x & 0x8FFF8FFFu) ^ 0x3B603B60u;
  return FloatToHalf(HalfToFloat(static_cast<uint16_t>(x & 0xFFFFu)) +
                     HalfToFloat(static_cast<uint16_t>(x >> 16)));
}

// fma(1024 + S, a, b) with S the sum of the four bytes: exact in fp64, then rounded once.
uint16_t AffineOfByteSum(uint32_t x) {
  const uint32_t sum = (x & 0xFF) + ((x >> 8) & 0xFF) + ((x >> 16) & 0xFF) + (x >> 24);
  constexpr double kSlope = 0.00676727294921875;  // fp16 0x1EEE
  constexpr double kOffset = -10.3828125;         // fp16 0xC931
  return DoubleToHalf((1024.0 + sum) * kSlope + kOffset);
}

}  // namespace

std::span<const Exl3Rate> AllExl3Rates() { return kRates; }

uint16_t CodebookValue(Codebook codebook, uint16_t state) {
  switch (codebook) {
    case Codebook::k3inst:
      return SumOfHalves(state * 89226354u + 64248484u);
    case Codebook::kMcg:
      return SumOfHalves(state * 0xCBAC1FEDu);
    case Codebook::kMul1:
      return AffineOfByteSum(state * 0x83DCD12Du);
  }
  return 0;
}

uint16_t StateAt(const uint16_t* words, int k2, int p) {
  const int ring = 128 * k2;
  const int start = EndBit(k2, p) - 16 + ring;
  uint32_t state = 0;
  for (int j = 0; j < 16; ++j) {
    const int i = (start + j) % ring;
    state = (state << 1) | ((words[WordOf(i)] >> ShiftOf(i)) & 1u);
  }
  return static_cast<uint16_t>(state);
}

void DecodeTile(const uint16_t* words, Exl3Rate rate, uint16_t* values) {
  for (int p = 0; p < kTileWeights; ++p) {
    const TileElement element = ElementOf(p);
    values[element.row * kTileSide + element.column] =
        CodebookValue(rate.codebook, StateAt(words, rate.k2, p));
  }
}

bool IsRing(std::span<const uint16_t, kTileWeights> states, int k2) {
  for (int p = 0; p < kTileWeights; ++p) {
    const int shared = 16 - OwnBits(k2, p);
    const uint32_t before = states[static_cast<size_t>((p + 255) % 256)];
    const uint32_t mask = (1u << shared) - 1;
    const uint32_t repeated = uint32_t{states[static_cast<size_t>(p)]} >> (16 - shared);
    if (repeated != (before & mask)) return false;
  }
  return true;
}

void PackStates(std::span<const uint16_t, kTileWeights> states, int k2, uint16_t* words) {
  std::fill_n(words, TileWords(k2), uint16_t{0});
  for (int p = 0; p < kTileWeights; ++p) {
    const int own = OwnBits(k2, p);
    const int first = EndBit(k2, p) - own;
    for (int j = 0; j < own; ++j) {
      const uint32_t bit = (states[static_cast<size_t>(p)] >> (own - 1 - j)) & 1u;
      uint16_t& word = words[WordOf(first + j)];
      word = static_cast<uint16_t>(word | (bit << ShiftOf(first + j)));
    }
  }
}

}  // namespace hallmark
