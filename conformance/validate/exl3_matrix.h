// SPDX-License-Identifier: Apache-2.0
// Exl3Matrix: the weights that an EXL3 group stands for, in the basis of the model, block by block:
// W = diag(suh) H W_q H diag(svh). Both Hadamard matrices act on 128 rows or columns at a time, so
// a block of 128 x 128 needs nothing but its own 64 tiles and its scales. For comparing with a
// source model; not on the engine's path, which never leaves the rotated basis. The states are read
// a word at a time and are those of StateAt (engine/backend/exl3_codec.h), which is the definition.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_EXL3_MATRIX_H_
#define HALLMARK_CONFORMANCE_VALIDATE_EXL3_MATRIX_H_

#include <array>
#include <cstdint>
#include <vector>

#include "engine/backend/exl3_codec.h"
#include "engine/base/result.h"
#include "engine/format/linear.h"

namespace hallmark {

// Input scales [k], signs included; of packed ones the magnitude is 1.
Result<std::vector<float>> ReadExl3InputScales(const Exl3Group& group);

// Decodes tiles of one rate.
class TileDecoder {
 public:
  explicit TileDecoder(Exl3Rate rate);
  // values [16 inputs, 16 outputs], row r at values + r * stride. `words` as the tensor stores
  // them, of any alignment.
  void Decode(const std::byte* words, float* values, int64_t stride) const;

 private:
  struct Place {
    uint8_t high, low;  // the two 32-bit words of the stream that hold the state
    uint8_t shift;      // of the pair, to the right
    uint8_t row, column;
  };
  int stream_words_ = 0;
  std::array<Place, kTileWeights> places_;
  const float* table_ = nullptr;  // [65536], of the codebook
};

class Exl3Matrix {
 public:
  static constexpr int64_t kBlockValues = int64_t{kExl3Block} * kExl3Block;

  // Reads the scales. `group` outlives the matrix.
  static Result<Exl3Matrix> Open(const Exl3Group& group);

  int64_t input_blocks() const { return group_->k / kExl3Block; }
  int64_t output_blocks() const { return group_->n / kExl3Block; }
  // out [128 inputs, 128 outputs]. Thread-safe.
  void Block(int64_t input_block, int64_t output_block, float* out) const;

 private:
  explicit Exl3Matrix(const Exl3Group& group)
      : group_(&group), decoder_({group.codebook, group.k2}) {}

  const Exl3Group* group_;
  TileDecoder decoder_;
  std::vector<float> input_, output_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_EXL3_MATRIX_H_
