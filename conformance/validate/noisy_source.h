// SPDX-License-Identifier: Apache-2.0
// NoisySource: a plain model that a quantized one could have been made from: its own decoded
// weights and noise as large as an honest quantizer's error would be. For suites of the source
// step, where the real source is too large to keep.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_NOISY_SOURCE_H_
#define HALLMARK_CONFORMANCE_VALIDATE_NOISY_SOURCE_H_

#include <map>
#include <string>

#include "engine/base/result.h"

namespace hallmark {

// The error that a linear shall have, in parts of the middle of its band (error_band.h), by the
// linear's name. Others have kUsualNoise.
using Noise = std::map<std::string, double>;
inline constexpr double kUsualNoise = 1.2;

// Writes config.json and model.safetensors, and tokenizer.json if there is one, into `out`, which
// is made or emptied.
Status WriteNoisySource(const std::string& quantized, const std::string& out,
                        const Noise& noise = {});

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_NOISY_SOURCE_H_
