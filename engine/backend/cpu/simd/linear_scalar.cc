// SPDX-License-Identifier: Apache-2.0
// The scalar tier's table: the definitions in ref/, 16 columns a panel, in natural order.
#include <array>
#include <cstring>
#include <utility>

#include "engine/backend/cpu/exl3_pack.h"
#include "engine/backend/cpu/ref/exl3_linear.h"
#include "engine/backend/cpu/ref/hadamard.h"
#include "engine/backend/cpu/simd/linear_loops.h"
#include "engine/base/float_types.h"

namespace hallmark {
namespace {

constexpr int kPanelValues = kExl3Block * kTileSide;

template <size_t kIndex>
void DecodeExl3(const uint8_t* packed, float* panel) {
  const Exl3Rate rate = AllExl3Rates()[kIndex];
  uint16_t tiles[8 * kMaxTileWords];
  std::memcpy(tiles, packed, sizeof(uint16_t) * static_cast<size_t>(8 * TileWords(rate.k2)));
  RefDecodePanel(rate, tiles, panel);
}

template <size_t... kIndex>
constexpr std::array<DecodePanelLoop, sizeof...(kIndex)> Decoders(std::index_sequence<kIndex...>) {
  return {&DecodeExl3<kIndex>...};
}

DecodePanelLoop Exl3Decoder(int codebook, int k2) {
  static constexpr auto kDecoders = Decoders(std::make_index_sequence<27>());
  const auto rates = AllExl3Rates();
  for (size_t i = 0; i < rates.size(); ++i) {
    if (static_cast<int>(rates[i].codebook) == codebook && rates[i].k2 == k2) return kDecoders[i];
  }
  return nullptr;
}

template <auto kWiden>
void DecodePlain16(const uint8_t* packed, float* panel) {
  for (int i = 0; i < kPanelValues; ++i) {
    uint16_t bits;
    std::memcpy(&bits, packed + 2 * i, sizeof(bits));
    panel[i] = kWiden(bits);
  }
}

void DecodeF32(const uint8_t* packed, float* panel) {
  std::memcpy(panel, packed, kPanelValues * sizeof(float));
}

DecodePanelLoop PlainDecoder(PlainType type) {
  switch (type) {
    case PlainType::kBf16:
      return &DecodePlain16<&Bf16ToFloat>;
    case PlainType::kF16:
      return &DecodePlain16<&HalfToFloat>;
    case PlainType::kF32:
      return &DecodeF32;
  }
  return nullptr;
}

void AddPanel(const float* panel, const float* x, int64_t rows, float* sum) {
  for (int64_t row = 0; row < rows; ++row) {
    RefAddPanel(panel, x + row * kExl3Block, sum + row * kExl3Block);
  }
}

bool RotateInput(const float* x, const float* suh, float* xh) {
  return RefRotateInput(x, kExl3Block, suh, kExl3Block, xh);
}

void RotateOutput(const float* sum, const float* svh, const float* bias, float* y) {
  float copy[kExl3Block];
  std::memcpy(copy, sum, sizeof(copy));
  RefRotateOutput(copy, svh, bias, kExl3Block, y);
}

void UnpackPanel(const float* panel, float* values) {
  std::memcpy(values, panel, kPanelValues * sizeof(float));
}

}  // namespace

const LinearLoops& ScalarLinearLoops() {
  static constexpr LinearLoops kLoops = {kTileSide,     &PackWholeTiles, &Exl3Decoder,
                                         &PlainDecoder, &AddPanel,       &AddPanel,
                                         &RotateInput,  &RotateOutput,   &UnpackPanel};
  return kLoops;
}

}  // namespace hallmark
