// SPDX-License-Identifier: Apache-2.0
// DSSE v1 envelopes around receipts, signed with Ed25519 (libsodium). One signature an envelope. A
// signature says who vouches for a receipt; it does not make the receipt pass.
#ifndef HALLMARK_RECEIPTS_VERIFY_DSSE_H_
#define HALLMARK_RECEIPTS_VERIFY_DSSE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "receipts/verify/reason.h"

namespace hallmark::verify {

inline constexpr char kPayloadType[] = "application/vnd.in-toto+json";

using PublicKey = std::array<uint8_t, 32>;

// Wiped when it goes.
struct SecretKey {
  SecretKey() = default;
  ~SecretKey();
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  std::array<uint8_t, 32> seed{};
};

struct Envelope {
  std::string payload;    // the bytes that were signed
  std::string keyid;      // a hint, part of no signature
  std::string signature;  // 64 bytes; empty when there is none
};

// A fresh key from the system's randomness. kInternal when the library cannot start.
Result<SecretKey> NewSecretKey();
Result<PublicKey> PublicKeyOf(const SecretKey& key);
std::string KeyId(const PublicKey& key);  // SHA-256 of its bytes

// The text of an envelope around `payload`, canonical JSON. Same input, same bytes.
Result<std::string> SignEnvelope(std::string_view payload, const SecretKey& key);

// Nothing, and at least one finding (envelope-malformed, payload-type, payload-encoding,
// signature-count, signature-encoding), when the text is no such envelope.
std::optional<Envelope> ReadEnvelope(std::string_view text, Findings& findings);
bool SignatureHolds(const Envelope& envelope, const PublicKey& key);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_DSSE_H_
