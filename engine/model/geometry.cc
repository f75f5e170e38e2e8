// SPDX-License-Identifier: Apache-2.0
#include "engine/model/geometry.h"

#include "engine/base/elementary.h"

namespace hallmark {

AttentionGeometry AttentionGeometryOf(const ModelConfig& config) {
  return {.heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim,
          .rotary_dim = config.rotary_dim,
          .eps = config.eps};
}

DeltaNetGeometry DeltaNetGeometryOf(const ModelConfig& config) {
  return {.key_heads = config.linear_key_heads,
          .value_heads = config.linear_value_heads,
          .key_dim = config.linear_key_dim,
          .value_dim = config.linear_value_dim,
          .conv_kernel = config.conv_kernel,
          .eps = config.eps};
}

std::vector<float> InverseFrequencies(double theta, int rotary_dim) {
  std::vector<float> frequencies(static_cast<size_t>(rotary_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / rotary_dim;
    frequencies[i] = static_cast<float>(Exp(exponent * Log(theta)));
  }
  return frequencies;
}

}  // namespace hallmark
