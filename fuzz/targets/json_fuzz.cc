// SPDX-License-Identifier: Apache-2.0
// ParseJson takes any bytes; what it accepts has a canonical form that parses to the same value.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = hallmark::ParseJson(text, "fuzz");
  if (!value.has_value()) return 0;
  const auto again = hallmark::ParseJson(hallmark::CanonicalJson(*value), "fuzz");
  if (!again.has_value() || *again != *value) std::abort();
  return 0;
}
