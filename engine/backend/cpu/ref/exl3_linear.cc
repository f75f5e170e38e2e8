// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/ref/exl3_linear.h"

#include <algorithm>
#include <vector>

#include "engine/backend/cpu/ref/hadamard.h"
#include "engine/base/float_types.h"

namespace hallmark {
namespace {

constexpr int64_t kBlockTiles = kExl3Block / kTileSide;

// tiles [8, words] <- the 8 tiles of one 128-block of inputs in tile column `column`.
void GatherTiles(const Exl3Operand& weight, int64_t block, int64_t column, uint16_t* tiles) {
  const int64_t words = TileWords(weight.rate.k2);
  for (int64_t t = 0; t < kBlockTiles; ++t) {
    const int64_t tile = (block * kBlockTiles + t) * (weight.n / kTileSide) + column;
    std::copy_n(weight.trellis + tile * words, words, tiles + t * words);
  }
}

}  // namespace

void RefDecodePanel(Exl3Rate rate, const uint16_t* tiles, float* w) {
  for (int64_t t = 0; t < kBlockTiles; ++t) {
    uint16_t values[kTileWeights];
    DecodeTile(tiles + t * TileWords(rate.k2), rate, values);
    for (int i = 0; i < kTileWeights; ++i) w[t * kTileWeights + i] = HalfToFloat(values[i]);
  }
}

void RefAddPanel(const float* w, const float* x, float* sum) {
  float partial[16][kTileSide] = {};
  for (int j = 0; j < 16; ++j) {
    for (int t = 0; t < 8; ++t) {
      for (int c = 0; c < kTileSide; ++c) {
        partial[j][c] += x[16 * t + j] * w[(16 * t + j) * kTileSide + c];
      }
    }
  }
  for (int step = 8; step > 0; step /= 2) {
    for (int j = 0; j < step; ++j) {
      for (int c = 0; c < kTileSide; ++c) partial[j][c] += partial[j + step][c];
    }
  }
  for (int c = 0; c < kTileSide; ++c) sum[c] += partial[0][c];
}

bool RefExl3Linear(const Exl3Operand& weight, const float* x, int64_t rows, int64_t in_features,
                   int64_t out_features, float* y) {
  std::vector<float> xh(static_cast<size_t>(rows * weight.k));
  for (int64_t row = 0; row < rows; ++row) {
    if (!RefRotateInput(x + row * in_features, in_features, weight.suh, weight.k,
                        xh.data() + row * weight.k)) {
      return false;
    }
  }
  std::vector<float> sum(static_cast<size_t>(rows * weight.n), 0.0f);
  for (int64_t column = 0; column < weight.n / kTileSide; ++column) {
    for (int64_t block = 0; block < weight.k / kExl3Block; ++block) {
      uint16_t tiles[kBlockTiles * kMaxTileWords];
      float w[kExl3Block * kTileSide];
      GatherTiles(weight, block, column, tiles);
      RefDecodePanel(weight.rate, tiles, w);
      for (int64_t row = 0; row < rows; ++row) {
        RefAddPanel(w, xh.data() + row * weight.k + block * kExl3Block,
                    sum.data() + row * weight.n + column * kTileSide);
      }
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < out_features; c += kExl3Block) {
      RefRotateOutput(sum.data() + row * weight.n + c, weight.svh + c,
                      weight.bias != nullptr ? weight.bias + c : nullptr,
                      std::min<int64_t>(kExl3Block, out_features - c), y + row * out_features + c);
    }
  }
  return true;
}

}  // namespace hallmark
