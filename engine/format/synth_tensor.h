// SPDX-License-Identifier: Apache-2.0
// SynthTensor: a tensor that a formula stands for: its bytes are a function of a seed, its name and
// the offset, so that any part of it can be made anywhere, in a file, in memory or on the way to a
// device, and is the same on every machine. Random values of a stated distribution, no weights.
#ifndef HALLMARK_ENGINE_FORMAT_SYNTH_TENSOR_H_
#define HALLMARK_ENGINE_FORMAT_SYNTH_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/format/tensor.h"

namespace hallmark {

enum class SynthFill {
  kWords,     // uniform bytes, of any type
  kBell,      // middle + spread * a roughly normal value of unit variance
  kUniform,   // uniform in [middle - spread, middle + spread]
  kSigned,    // either sign, magnitudes uniform in [0.75, 1.25] * spread
  kLeaning,   // kBell in rows, of which every fourth, from row `word` on, has no middle
  kConstant,  // middle
  kMarker,    // one 32-bit word
};

// kBell, kUniform, kSigned, kLeaning and kConstant are of BF16 or F16; kLeaning has two extents,
// the second a multiple of 4.
struct SynthTensor {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  SynthFill fill = SynthFill::kWords;
  float middle = 0.0f;
  float spread = 0.0f;
  uint32_t word = 0;

  uint64_t bytes() const;
};

// Makes the bytes of one seed's tensors. Not thread-safe: it keeps the last table of values. Fast
// enough for files of many GiB: two multiplications for every eight bytes, and four look-ups.
class SynthFiller {
 public:
  explicit SynthFiller(uint64_t seed) : seed_(seed) {}

  // Bytes [offset, offset + out.size()) of the tensor. `offset` is a multiple of 8, and the end a
  // multiple of 8 or the tensor's.
  void Fill(const SynthTensor& tensor, uint64_t offset, std::span<std::byte> out);

 private:
  // What each 16 random bits become; with kLeaning followed by the same without the middle.
  const std::vector<uint16_t>& TableOf(const SynthTensor& tensor);

  uint64_t seed_;
  std::vector<uint16_t> table_;
  SynthTensor made_for_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_SYNTH_TENSOR_H_
