// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/dsse.h"

#include <sodium.h>

#include <nlohmann/json.hpp>
#include <span>

#include "engine/base/json.h"
#include "engine/base/sha256.h"
#include "receipts/verify/base64.h"

namespace hallmark::verify {
namespace {

// What a signature covers: type and payload, each after its length, so that neither can grow into
// the other.
std::string PreAuthEncoding(std::string_view payload) {
  const std::string_view type = kPayloadType;
  std::string text = "DSSEv1 " + std::to_string(type.size()) + " ";
  text.append(type).append(" ").append(std::to_string(payload.size())).append(" ");
  text.append(payload);
  return text;
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// The 64 bytes libsodium signs with. The caller wipes them.
using Expanded = std::array<unsigned char, crypto_sign_SECRETKEYBYTES>;

Status Expand(const SecretKey& key, PublicKey& public_key, Expanded& expanded) {
  if (sodium_init() < 0 ||
      crypto_sign_seed_keypair(public_key.data(), expanded.data(), key.seed.data()) != 0) {
    return Fail(Code::kInternal, "libsodium could not start");
  }
  return {};
}

bool IsEnvelope(const Json& json, Findings& findings) {
  const auto malformed = [&](const char* pointer, const char* expected, const Json& found) {
    findings.Add("envelope-malformed", pointer, expected, Shown(found));
    return false;
  };
  if (!json.is_object() || json.size() != 3 || !json.contains("payload") ||
      !json.contains("payloadType") || !json.contains("signatures")) {
    return malformed("", "payload, payloadType and signatures, and nothing else", json);
  }
  if (!json["payload"].is_string()) return malformed("/payload", "a string", json["payload"]);
  if (!json["payloadType"].is_string()) {
    return malformed("/payloadType", "a string", json["payloadType"]);
  }
  const Json& list = json["signatures"];
  if (!list.is_array()) return malformed("/signatures", "a list", list);
  for (const Json& item : list) {
    if (!item.is_object() || item.size() != 2 || !item.contains("keyid") || !item.contains("sig") ||
        !item["keyid"].is_string() || !item["sig"].is_string()) {
      return malformed("/signatures", "keyid and sig, and nothing else", item);
    }
  }
  return true;
}

}  // namespace

SecretKey::~SecretKey() { sodium_memzero(seed.data(), seed.size()); }

Result<SecretKey> NewSecretKey() {
  if (sodium_init() < 0) return Fail(Code::kInternal, "libsodium could not start");
  SecretKey key;
  randombytes_buf(key.seed.data(), key.seed.size());
  return key;
}

Result<PublicKey> PublicKeyOf(const SecretKey& key) {
  PublicKey public_key{};
  Expanded expanded{};
  const Status expansion = Expand(key, public_key, expanded);
  sodium_memzero(expanded.data(), expanded.size());
  TRY(expansion);
  return public_key;
}

std::string KeyId(const PublicKey& key) {
  return Sha256Hex(std::as_bytes(std::span<const uint8_t>(key)));
}

Result<std::string> SignEnvelope(std::string_view payload, const SecretKey& key) {
  PublicKey public_key{};
  Expanded expanded{};
  TRY(Expand(key, public_key, expanded));
  const std::string signed_text = PreAuthEncoding(payload);
  std::array<unsigned char, crypto_sign_BYTES> signature{};
  crypto_sign_detached(signature.data(), nullptr, Bytes(signed_text), signed_text.size(),
                       expanded.data());
  sodium_memzero(expanded.data(), expanded.size());
  const Json envelope = {
      {"payload", ToBase64({Bytes(payload), payload.size()})},
      {"payloadType", kPayloadType},
      {"signatures", {{{"keyid", KeyId(public_key)}, {"sig", ToBase64(signature)}}}}};
  return CanonicalJson(envelope);
}

std::optional<Envelope> ReadEnvelope(std::string_view text, Findings& findings) {
  const auto json = ParseJson(text, "");
  if (!json.has_value()) {
    findings.Add("envelope-malformed", "", "JSON", ShownText(json.error().ToString()));
    return std::nullopt;
  }
  if (!IsEnvelope(*json, findings)) return std::nullopt;
  if ((*json)["payloadType"] != kPayloadType) {
    findings.Add("payload-type", "/payloadType", kPayloadType, Shown((*json)["payloadType"]));
    return std::nullopt;
  }
  auto payload = FromBase64((*json)["payload"].get_ref<const std::string&>());
  if (!payload) {
    findings.Add("payload-encoding", "/payload", "base64", Shown((*json)["payload"]));
    return std::nullopt;
  }
  Envelope envelope{.payload = *std::move(payload)};
  const Json& list = (*json)["signatures"];
  if (list.empty()) return envelope;
  if (list.size() != 1) {
    findings.Add("signature-count", "/signatures", "one", std::to_string(list.size()));
    return std::nullopt;
  }
  envelope.keyid = list[0]["keyid"].get<std::string>();
  auto signature = FromBase64(list[0]["sig"].get_ref<const std::string&>());
  if (!signature || signature->size() != crypto_sign_BYTES) {
    findings.Add("signature-encoding", "/signatures/0/sig", "64 bytes in base64",
                 Shown(list[0]["sig"]));
    return std::nullopt;
  }
  envelope.signature = *std::move(signature);
  return envelope;
}

bool SignatureHolds(const Envelope& envelope, const PublicKey& key) {
  if (envelope.signature.size() != crypto_sign_BYTES || sodium_init() < 0) return false;
  const std::string signed_text = PreAuthEncoding(envelope.payload);
  return crypto_sign_verify_detached(Bytes(envelope.signature), Bytes(signed_text),
                                     signed_text.size(), key.data()) == 0;
}

}  // namespace hallmark::verify
