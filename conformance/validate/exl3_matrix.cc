// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/exl3_matrix.h"

#include <cstring>

#include "conformance/validate/tensor_values.h"
#include "engine/backend/cpu/ref/hadamard.h"
#include "engine/base/float_types.h"
#include "engine/base/mapped_file.h"

namespace hallmark {
namespace {

constexpr int kStates = 65536;

const float* CodebookTable(Codebook codebook) {
  static const auto kTables = [] {
    std::array<std::vector<float>, 3> tables;
    for (const Codebook each : {Codebook::k3inst, Codebook::kMcg, Codebook::kMul1}) {
      std::vector<float>& table = tables[static_cast<size_t>(each)];
      table.resize(kStates);
      for (int state = 0; state < kStates; ++state) {
        table[static_cast<size_t>(state)] =
            HalfToFloat(CodebookValue(each, static_cast<uint16_t>(state)));
      }
    }
    return tables;
  }();
  return kTables[static_cast<size_t>(codebook)].data();
}

// Magnitudes and signs, or signs alone.
Result<std::vector<float>> ReadScales(const TensorView& tensor, bool packed) {
  if (!packed) return ReadFloats(tensor);
  std::vector<float> out;
  for (size_t i = 0; i < tensor.bytes.size(); i += 2) {
    uint16_t word;
    std::memcpy(&word, tensor.bytes.data() + i, sizeof(word));
    for (int bit = 0; bit < 16; ++bit) out.push_back((word >> bit & 1) != 0 ? -1.0f : 1.0f);
  }
  TRY(CheckIntact(tensor.bytes, tensor.file));
  return out;
}

// Butterflies over the rows of block [128, 128]: every column is transformed.
void HadamardOfColumns(float* block) {
  for (int stride = 1; stride < kExl3Block; stride *= 2) {
    for (int row = 0; row < kExl3Block; ++row) {
      if ((row & stride) != 0) continue;
      float* a = block + row * kExl3Block;
      float* b = a + stride * kExl3Block;
      for (int column = 0; column < kExl3Block; ++column) {
        const float sum = a[column] + b[column];
        b[column] = a[column] - b[column];
        a[column] = sum;
      }
    }
  }
  for (int64_t i = 0; i < Exl3Matrix::kBlockValues; ++i) block[i] *= kHadamardScale;
}

void Transpose(const float* in, float* out) {
  constexpr int kSide = 16;
  for (int row = 0; row < kExl3Block; row += kSide) {
    for (int column = 0; column < kExl3Block; column += kSide) {
      for (int i = row; i < row + kSide; ++i) {
        for (int j = column; j < column + kSide; ++j) {
          out[j * kExl3Block + i] = in[i * kExl3Block + j];
        }
      }
    }
  }
}

}  // namespace

Result<std::vector<float>> ReadExl3InputScales(const Exl3Group& group) {
  return ReadScales(group.input_scale, group.input_packed);
}

TileDecoder::TileDecoder(Exl3Rate rate) : table_(CodebookTable(rate.codebook)) {
  stream_words_ = TileWords(rate.k2) / 2;
  const int ring = 128 * rate.k2;
  for (int p = 0; p < kTileWeights; ++p) {
    const int start = (EndBit(rate.k2, p) - 16 + ring) % ring;
    const TileElement element = ElementOf(p);
    places_[static_cast<size_t>(p)] = {
        .high = static_cast<uint8_t>(start / 32),
        .low = static_cast<uint8_t>((start / 32 + 1) % stream_words_),
        .shift = static_cast<uint8_t>(48 - start % 32),
        .row = static_cast<uint8_t>(element.row),
        .column = static_cast<uint8_t>(element.column)};
  }
}

void TileDecoder::Decode(const std::byte* words, float* values, int64_t stride) const {
  std::array<uint32_t, kMaxTileWords / 2> stream;
  std::memcpy(stream.data(), words, static_cast<size_t>(stream_words_) * sizeof(uint32_t));
  for (const Place& place : places_) {
    const uint64_t pair = uint64_t{stream[place.high]} << 32 | stream[place.low];
    values[place.row * stride + place.column] = table_[pair >> place.shift & 0xFFFF];
  }
}

Result<Exl3Matrix> Exl3Matrix::Open(const Exl3Group& group) {
  Exl3Matrix matrix(group);
  matrix.input_ = TRY(ReadExl3InputScales(group));
  matrix.output_ = TRY(ReadScales(group.output_scale, group.output_packed));
  return matrix;
}

void Exl3Matrix::Block(int64_t input_block, int64_t output_block, float* out) const {
  constexpr int kTiles = kExl3Block / kTileSide;
  const size_t tile_bytes = static_cast<size_t>(2 * TileWords(group_->k2));
  const int64_t tile_columns = group_->n / kTileSide;
  for (int i = 0; i < kTiles; ++i) {
    for (int j = 0; j < kTiles; ++j) {
      const int64_t tile = (input_block * kTiles + i) * tile_columns + output_block * kTiles + j;
      decoder_.Decode(group_->trellis.bytes.data() + static_cast<size_t>(tile) * tile_bytes,
                      out + i * kTileSide * kExl3Block + j * kTileSide, kExl3Block);
    }
  }
  std::array<float, kBlockValues> turned;
  HadamardOfColumns(out);
  Transpose(out, turned.data());
  HadamardOfColumns(turned.data());
  Transpose(turned.data(), out);
  const float* suh = input_.data() + input_block * kExl3Block;
  const float* svh = output_.data() + output_block * kExl3Block;
  for (int row = 0; row < kExl3Block; ++row) {
    for (int column = 0; column < kExl3Block; ++column) {
      out[row * kExl3Block + column] *= suh[row] * svh[column];
    }
  }
}

}  // namespace hallmark
