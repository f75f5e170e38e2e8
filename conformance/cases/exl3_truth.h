// SPDX-License-Identifier: Apache-2.0
// Published EXL3 values: golden/format/exl3_vectors.json (one tile a rate) and
// golden/kernel/exl3_reconstruct.safetensors (a 128 x 128 layer for each whole width, decoded by
// ExLlamaV3 on a GPU). Reading only; nothing is compared here.
#ifndef HALLMARK_CONFORMANCE_CASES_EXL3_TRUTH_H_
#define HALLMARK_CONFORMANCE_CASES_EXL3_TRUTH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/backend/exl3_codec.h"
#include "engine/base/result.h"

namespace hallmark {

struct Exl3TileTruth {
  std::vector<uint16_t> words;   // [8 * k2], storage order
  std::vector<uint16_t> states;  // [256], stream order
  std::vector<uint16_t> values;  // [16 inputs, 16 outputs], fp16 bits
};

struct Exl3LayerTruth {
  std::vector<uint16_t> trellis;  // [8, 8, 8 * k2]
  std::vector<uint16_t> values;   // [128 inputs, 128 outputs], fp16 bits
};

// "1", "1.5" ... "8".
std::string BitsText(int k2);

// kMalformed names the pointer when the file lacks the tile or holds another number of values.
Result<Exl3TileTruth> ReadTileTruth(const std::string& golden, Exl3Rate rate);

// Whole widths only. kMalformed names the tensor.
Result<Exl3LayerTruth> ReadLayerTruth(const std::string& golden, Exl3Rate rate);

// The layer that repeats one tile at all 64 places.
Exl3LayerTruth LayerOfOneTile(const Exl3TileTruth& tile);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_EXL3_TRUTH_H_
