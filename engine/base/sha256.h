// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4, through OpenSSL) and lowercase hex. For digests in receipts and vectors.
#ifndef HALLMARK_ENGINE_BASE_SHA256_H_
#define HALLMARK_ENGINE_BASE_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hallmark {

using Sha256Digest = std::array<uint8_t, 32>;

// Streaming hash: Update any number of times, then Finish once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text);
  Sha256Digest Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string Hex(std::span<const uint8_t> bytes);

// Lowercase hex SHA-256 of the bytes, of a text, or of the object representation of a span of
// plain values (little-endian on every platform Hallmark builds for).
std::string Sha256Hex(std::span<const std::byte> bytes);
std::string Sha256Hex(std::string_view text);
template <typename T>
std::string Sha256HexOf(std::span<const T> values) {
  return Sha256Hex(std::as_bytes(values));
}

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_SHA256_H_
