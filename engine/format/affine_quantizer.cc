// SPDX-License-Identifier: Apache-2.0
#include "engine/format/affine_quantizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/float_types.h"
#include "engine/format/exl3_group.h"

namespace hallmark {
namespace {

constexpr size_t kGroup = static_cast<size_t>(kAffineGroup);

float Widen(const TensorView& tensor, size_t index) {
  const std::byte* at = tensor.bytes.data() + index * static_cast<size_t>(DTypeSize(tensor.dtype));
  if (tensor.dtype == DType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return tensor.dtype == DType::kF16 ? HalfToFloat(bits) : Bf16ToFloat(bits);
}

// To nearest, ties to even, for 0 <= value <= 15; independent of the rounding mode in force.
uint32_t RoundNibble(float value) {
  const float floor = std::floor(value);
  const float rest = value - floor;
  const auto low = static_cast<uint32_t>(floor);
  return low + (rest > 0.5f || (rest == 0.5f && (low & 1u) != 0) ? 1u : 0u);
}

void QuantizeGroup(const float* w, uint16_t* scale, uint16_t* bias, uint32_t* words) {
  const auto [lo, hi] = std::minmax_element(w, w + kGroup);
  *scale = FloatToBf16(std::max((*hi - *lo) / 15.0f, 1e-8f));
  *bias = FloatToBf16(*lo);
  const float s = Bf16ToFloat(*scale);
  const float b = Bf16ToFloat(*bias);
  std::fill_n(words, kGroup / 8, 0u);
  for (size_t i = 0; i < kGroup; ++i) {
    const float q = std::clamp((w[i] - b) / s, 0.0f, 15.0f);
    words[i / 8] |= RoundNibble(q) << (4 * (i % 8));
  }
}

TensorView View(const TensorView& of, const char* suffix, DType dtype, int64_t cols,
                const std::vector<std::byte>& bytes) {
  return {.name = of.name + suffix,
          .dtype = dtype,
          .shape = {of.shape[0], cols},
          .bytes = bytes,
          .file = of.file,
          .file_offset = of.file_offset};
}

}  // namespace

Result<QuantizedAffine> QuantizeAffine(const PlainLinear& plain) {
  CHECK(!plain.bias && plain.k % kAffineGroup == 0);
  TRY(CheckFinite(plain.weight));
  const size_t groups = static_cast<size_t>(plain.n * plain.k) / kGroup;
  QuantizedAffine out;
  out.words.resize(groups * kGroup / 2);
  out.scales.resize(groups * 2);
  out.biases.resize(groups * 2);
  for (size_t g = 0; g < groups; ++g) {
    float w[kGroup];
    for (size_t i = 0; i < kGroup; ++i) w[i] = Widen(plain.weight, g * kGroup + i);
    uint16_t scale, bias;
    uint32_t words[kGroup / 8];
    QuantizeGroup(w, &scale, &bias, words);
    std::memcpy(out.words.data() + g * sizeof(words), words, sizeof(words));
    std::memcpy(out.scales.data() + 2 * g, &scale, 2);
    std::memcpy(out.biases.data() + 2 * g, &bias, 2);
  }
  const TensorView& from = plain.weight;
  out.source = {.in_features = plain.k,
                .out_features = plain.n,
                .weights = AffineLinear{
                    .name = plain.name,
                    .k = plain.k,
                    .n = plain.n,
                    .weight = View(from, "", DType::kU32, plain.k / 8, out.words),
                    .scales = View(from, ".scales", DType::kBF16, plain.k / 64, out.scales),
                    .biases = View(from, ".biases", DType::kBF16, plain.k / 64, out.biases)}};
  return out;
}

}  // namespace hallmark
