// SPDX-License-Identifier: Apache-2.0
#include "engine/base/sha256.h"

#include <openssl/evp.h>

#include "engine/base/check.h"

namespace hallmark {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  CHECK(context_->evp != nullptr);
  CHECK(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::span<const std::byte> bytes) {
  CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1);
}

void Sha256::Update(std::string_view text) { Update(std::as_bytes(std::span(text))); }

Sha256Digest Sha256::Finish() {
  Sha256Digest digest{};
  unsigned int size = 0;
  CHECK(EVP_DigestFinal_ex(context_->evp, digest.data(), &size) == 1);
  CHECK(size == digest.size());
  return digest;
}

std::string Hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string Sha256Hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return Hex(hash.Finish());
}

std::string Sha256Hex(std::string_view text) { return Sha256Hex(std::as_bytes(std::span(text))); }

}  // namespace hallmark
