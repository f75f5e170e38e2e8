// SPDX-License-Identifier: Apache-2.0
// ParseQuantizationConfig takes any document; what it accepts keeps the promises of its header,
// agrees with itself, and can be held against tensors.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/format/quantization_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = hallmark::ParseJson(text, "fuzz");
  if (!document.has_value()) return 0;
  const auto reading = hallmark::ReadQuantizationConfig(*document, "fuzz", "");
  const auto config = hallmark::ParseQuantizationConfig(*document, "fuzz", "");
  if (config.has_value() != reading.faults.empty()) std::abort();
  if (!config.has_value()) return 0;
  const auto is_width = [](int bits) { return (bits >= 1 && bits <= 8) || bits == 16; };
  bool sound = !config->bits || (*config->bits >= 1.0 && *config->bits <= 8.0);
  if (config->head_bits) sound = sound && is_width(*config->head_bits);
  if (config->mtp_bits) sound = sound && is_width(*config->mtp_bits);
  if (!sound || !hallmark::Disagreements(*config, *config).empty()) std::abort();
  // Whatever is listed is absent from a checkpoint of no tensors.
  size_t listed = 0;
  for (const hallmark::StoredModule& module : config->storage) listed += module.tensors.size();
  if (hallmark::StorageFaults(*config, {}).empty() && listed > 0) std::abort();
  return 0;
}
