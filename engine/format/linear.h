// SPDX-License-Identifier: Apache-2.0
// LinearSource: where one linear layer's weights come from, an EXL3 group, a plain matrix or a
// 4-bit affine one (drafters alone), already checked. Sizes named in_features/out_features are the
// model's; k and n are the stored, padded ones.
#ifndef HALLMARK_ENGINE_FORMAT_LINEAR_H_
#define HALLMARK_ENGINE_FORMAT_LINEAR_H_

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "engine/format/tensor.h"

namespace hallmark {

// How a 16-bit trellis state becomes an fp16 value. The values index published vectors.
enum class Codebook { k3inst = 0, kMcg = 1, kMul1 = 2 };
std::string_view CodebookName(Codebook codebook);  // "3inst", "mcg", "mul1"

// One EXL3 linear: y = ((((x * suh) H) W_q) H) * svh + bias.
struct Exl3Group {
  std::string name;  // prefix, without a trailing dot
  Codebook codebook = Codebook::k3inst;
  int k2 = 0;     // twice the bits a weight: 2..8 even or odd, 10, 12, 14, 16; odd only with mul1
  int64_t k = 0;  // stored inputs, a multiple of 128
  int64_t n = 0;  // stored outputs, a multiple of 128
  TensorView trellis;  // I16 [k/16, n/16, 8*k2]
  // Scales: F16 [k] and [n]; or, packed, I16 sign words [k/16] and [n/16] (bit i of word w set =>
  // element 16w+i is -1, else +1).
  TensorView input_scale;
  bool input_packed = false;
  TensorView output_scale;
  bool output_packed = false;
  std::optional<TensorView> bias;  // F16 or F32 [n]

  double bits() const { return k2 / 2.0; }
};

// W [n, k] row-major in BF16, F16 or F32; y = x W^T + bias.
struct PlainLinear {
  std::string name;
  int64_t k = 0;
  int64_t n = 0;
  TensorView weight;
  std::optional<TensorView> bias;  // BF16, F16 or F32 [n]
};

// 4-bit affine: w = s * q + b for a group of 64 inputs; the layout of MLX. weight U32 [n, k/8],
// element 8m + j of a row in bits 4j .. 4j + 3 of word m; scales and biases BF16, F16 or F32
// [n, k/64]. No bias is added to the output.
inline constexpr int64_t kAffineGroup = 64;
inline constexpr int64_t kAffineWordValues = 8;
struct AffineLinear {
  std::string name;
  int64_t k = 0;  // a multiple of 64
  int64_t n = 0;
  TensorView weight;
  TensorView scales;
  TensorView biases;
};

struct LinearSource {
  int64_t in_features = 0;
  int64_t out_features = 0;
  std::variant<Exl3Group, PlainLinear, AffineLinear> weights;

  const std::string& name() const;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_LINEAR_H_
