// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/base64.h"

#include <sodium.h>

namespace hallmark::verify {

std::string ToBase64(std::span<const uint8_t> bytes) {
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_encoded_len(bytes.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(), kVariant);
  text.pop_back();  // the library ends with a zero byte
  return text;
}

std::optional<std::string> FromBase64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                        text.size(), nullptr, &size, nullptr,
                        sodium_base64_VARIANT_ORIGINAL) != 0) {
    return std::nullopt;
  }
  bytes.resize(size);
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (ToBase64({data, bytes.size()}) != text) return std::nullopt;
  return bytes;
}

}  // namespace hallmark::verify
