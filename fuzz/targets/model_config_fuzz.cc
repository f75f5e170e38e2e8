// SPDX-License-Identifier: Apache-2.0
// ParseModelConfig takes any bytes; what it accepts keeps the promises of its header.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/format/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = hallmark::ParseModelConfig(text, "fuzz");
  if (!config.has_value()) return 0;
  const bool sound = config->hidden > 0 && config->vocab > 0 && !config->layers.empty() &&
                     config->kv_heads > 0 && config->heads % config->kv_heads == 0 &&
                     config->rotary_dim >= 2 && config->rotary_dim % 2 == 0 &&
                     config->rotary_dim <= config->head_dim && config->linear_key_heads > 0 &&
                     config->linear_value_heads % config->linear_key_heads == 0 &&
                     config->conv_channels() > 0 && config->query_width() > 0;
  if (!sound) std::abort();
  return 0;
}
