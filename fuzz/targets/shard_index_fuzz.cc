// SPDX-License-Identifier: Apache-2.0
// ShardIndexFromJson takes any document; a file it accepts is a plain name in the same folder.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/format/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = hallmark::ParseJson(text, "fuzz");
  if (!document.has_value()) return 0;
  const auto index = hallmark::ShardIndexFromJson(*document, "fuzz");
  if (!index.has_value()) return 0;
  for (const std::string& file : index->Files()) {
    if (file.find_first_of("/\\") != std::string::npos || !file.ends_with(".safetensors")) {
      std::abort();
    }
  }
  return 0;
}
