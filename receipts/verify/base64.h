// SPDX-License-Identifier: Apache-2.0
// Base64 with padding (RFC 4648), through libsodium; only the one canonical text of some bytes is
// read back.
#ifndef HALLMARK_RECEIPTS_VERIFY_BASE64_H_
#define HALLMARK_RECEIPTS_VERIFY_BASE64_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hallmark::verify {

std::string ToBase64(std::span<const uint8_t> bytes);
// Nothing for a text that is not exactly ToBase64 of some bytes.
std::optional<std::string> FromBase64(std::string_view text);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_BASE64_H_
