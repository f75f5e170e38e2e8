// SPDX-License-Identifier: Apache-2.0
// RandomExl3: one EXL3 linear with random tiles and scales, and everything a test needs to run it:
// the source as the format layer would hand it over, and the plain arrays of the definition. Not a
// quantizer: the weights approximate nothing. Deterministic in its options.
#ifndef HALLMARK_CONFORMANCE_HARNESS_RANDOM_EXL3_H_
#define HALLMARK_CONFORMANCE_HARNESS_RANDOM_EXL3_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/backend/cpu/ref/exl3_linear.h"
#include "engine/backend/exl3_codec.h"
#include "engine/format/linear.h"

namespace hallmark {

struct RandomExl3Options {
  Exl3Rate rate = {Codebook::kMul1, 6};
  int64_t in_features = 128;  // stored sizes are the next multiples of 128
  int64_t out_features = 128;
  bool input_packed = false;  // sign words in place of fp16 scales
  bool output_packed = false;
  bool bias = false;
  uint64_t seed = 1;
};

class RandomExl3 {
 public:
  explicit RandomExl3(const RandomExl3Options& options);
  RandomExl3(const RandomExl3&) = delete;
  RandomExl3& operator=(const RandomExl3&) = delete;

  // Views into this object; every tensor starts at an odd address, as in a real file.
  const LinearSource& source() const { return source_; }
  const Exl3Group& group() const { return std::get<Exl3Group>(source_.weights); }
  Exl3Operand operand() const;

  // Replaces the tiles. words [k/16, n/16, 8 * k2].
  void SetTiles(std::span<const uint16_t> words);

 private:
  TensorView View(const char* name, DType dtype, std::vector<int64_t> shape,
                  std::span<const uint16_t> words);

  RandomExl3Options options_;
  std::vector<uint16_t> words_;
  std::vector<float> suh_, svh_, bias_;
  std::vector<std::vector<std::byte>> storage_;
  LinearSource source_;
};

// rows * columns values, roughly normal with unit variance.
std::vector<float> RandomRows(int64_t rows, int64_t columns, uint64_t seed);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_RANDOM_EXL3_H_
