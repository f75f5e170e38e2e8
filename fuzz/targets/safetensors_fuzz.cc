// SPDX-License-Identifier: Apache-2.0
// ParseSafetensors takes any bytes, and gives the verdict and the table of the reference reader,
// which shares no code with it; every tensor of what it accepts lies inside the bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "engine/format/safetensors.h"
#include "fuzz/reference/safetensors_reference.h"

namespace {

bool IsSame(const hallmark::TensorView& ours, const std::string& name,
            const hallmark::reference::Tensor& wanted, std::span<const std::byte> file) {
  return ours.name == name && hallmark::DTypeName(ours.dtype) == wanted.dtype &&
         std::ranges::equal(
             ours.shape, wanted.shape,
             [](int64_t a, uint64_t b) { return a >= 0 && static_cast<uint64_t>(a) == b; }) &&
         ours.file_offset == wanted.begin && ours.bytes.size() == wanted.end - wanted.begin &&
         ours.bytes.data() == file.data() + wanted.begin;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto table = hallmark::ParseSafetensors(bytes, "fuzz");
  const auto wanted =
      hallmark::reference::ReadSafetensors({reinterpret_cast<const char*>(data), size});
  if (table.has_value() != wanted.has_value()) std::abort();
  if (!table.has_value()) {
    const hallmark::Locator& where = table.error().where;
    if (where.file != "fuzz" || !where.byte || *where.byte > size) std::abort();
    return 0;
  }
  if (table->metadata != wanted->metadata) std::abort();
  if (table->tensors.size() != wanted->tensors.size()) std::abort();
  size_t i = 0;
  for (const auto& [name, tensor] : wanted->tensors) {
    if (!IsSame(table->tensors[i++], name, tensor, bytes)) std::abort();
  }
  return 0;
}
