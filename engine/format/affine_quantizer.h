// SPDX-License-Identifier: Apache-2.0
// AffineQuantizer: a plain matrix made into a 4-bit affine one (linear.h) when it is loaded. Not a
// checkpoint format and no calibration: each group of 64 weights of a row is rounded by itself:
//   s = bf16(max((hi - lo) / 15, 1e-8)), b = bf16(lo), q = (w - b) / s rounded to nearest, ties to
//   even, and kept within 0 .. 15; all in fp32.
// Deterministic: the same bits on every machine.
#ifndef HALLMARK_ENGINE_FORMAT_AFFINE_QUANTIZER_H_
#define HALLMARK_ENGINE_FORMAT_AFFINE_QUANTIZER_H_

#include <cstddef>
#include <vector>

#include "engine/base/result.h"
#include "engine/format/linear.h"

namespace hallmark {

// The quantized matrix and the memory its views point into. Move-only: views follow the heap.
struct QuantizedAffine {
  QuantizedAffine() = default;
  QuantizedAffine(QuantizedAffine&&) = default;
  QuantizedAffine& operator=(QuantizedAffine&&) = default;

  std::vector<std::byte> words;   // U32 [n, k/8]
  std::vector<std::byte> scales;  // BF16 [n, k/64]
  std::vector<std::byte> biases;  // BF16 [n, k/64]
  LinearSource source;
};

// `plain` has no bias and inputs that are a multiple of 64 (the caller checks). kOutOfRange names a
// matrix with a value that is not finite.
Result<QuantizedAffine> QuantizeAffine(const PlainLinear& plain);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_AFFINE_QUANTIZER_H_
