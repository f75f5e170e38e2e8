// SPDX-License-Identifier: Apache-2.0
// ParseDrafterConfig takes any bytes; what it accepts keeps the promises of its header.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/format/drafter_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hallmark::DrafterConfig;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = hallmark::ParseDrafterConfig(text, "fuzz");
  if (!config.has_value()) return 0;
  bool sound = config->hidden > 0 && config->intermediate > 0 && config->vocab > 0 &&
               config->kv_heads > 0 && config->heads % config->kv_heads == 0 &&
               config->head_dim >= 2 && config->head_dim % 2 == 0 && config->eps > 0.0f &&
               config->rope_theta >= 1.0 && !config->layers.empty() && config->block_size >= 2 &&
               config->block_size <= DrafterConfig::kMaxBlock && config->mask_token >= 0 &&
               config->mask_token < config->vocab && !config->targets.empty() &&
               config->tap_width() > 0 && std::isfinite(config->input_scale) &&
               std::isfinite(config->output_multiplier);
  for (const hallmark::DrafterLayerKind& layer : config->layers) {
    sound = sound && layer.window.value_or(1) >= 1;
  }
  for (const int64_t target : config->targets) {
    sound = sound && target >= 0 &&
            std::count(config->targets.begin(), config->targets.end(), target) == 1;
  }
  if (config->conv) sound = sound && config->hidden % config->conv->group == 0;
  if (config->selector) sound = sound && config->selector->top_k <= config->vocab;
  if (!sound) std::abort();
  return 0;
}
