// SPDX-License-Identifier: Apache-2.0
// ParseSafetensors takes any bytes; every tensor of what it accepts lies inside them.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "engine/format/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto table = hallmark::ParseSafetensors(bytes, "fuzz");
  if (!table.has_value()) return 0;
  for (const hallmark::TensorView& tensor : table->tensors) {
    const std::byte* begin = tensor.bytes.data();
    if (tensor.bytes.empty()) continue;
    if (begin < bytes.data() || begin + tensor.bytes.size() > bytes.data() + bytes.size()) {
      std::abort();
    }
  }
  return 0;
}
