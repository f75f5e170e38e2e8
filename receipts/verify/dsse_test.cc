// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/dsse.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/base/sha256.h"
#include "receipts/verify/base64.h"
#include "receipts/verify/edited_receipt.h"
#include "receipts/verify/key_file.h"

namespace hallmark::verify {
namespace {

SecretKey KeyOf(uint8_t byte) {
  SecretKey key;
  key.seed.fill(byte);
  return key;
}

struct Signed {
  std::string name;  // of the envelope
  std::string text;
  PublicKey key;
};

Signed SignPublished(const SecretKey& key) {
  const PublishedReceipt published = PublishedReceipts().front();
  const std::string suffix = ".intoto.jsonl";
  return {published.name.substr(0, published.name.size() - suffix.size()) + ".dsse.json",
          *SignEnvelope(published.bytes, key), *PublicKeyOf(key)};
}

std::vector<std::string> Reasons(const std::string& name, const std::string& text,
                                 const PublicKey& key) {
  const ReceiptVerdict verdict = VerifyBytes(name, text, {.public_key = key});
  EXPECT_EQ(verdict.signature == "valid", verdict.outcome == Outcome::kPass);
  return ReasonsOf(verdict);
}

using Texts = std::vector<std::string>;

TEST(Dsse, Ed25519GivesThePublishedSignature) {
  // RFC 8032, 7.1, test 1: the key of this seed.
  const std::string seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
  SecretKey key;
  for (size_t i = 0; i < key.seed.size(); ++i) {
    key.seed[i] = static_cast<uint8_t>(std::stoi(seed.substr(2 * i, 2), nullptr, 16));
  }
  EXPECT_EQ(Hex(*PublicKeyOf(key)),
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
}

TEST(Dsse, ASignedReceiptPassesAndSaysSo) {
  const Signed one = SignPublished(KeyOf(1));
  const ReceiptVerdict verdict = VerifyBytes(one.name, one.text, {.public_key = one.key});
  EXPECT_EQ(ReasonsOf(verdict), Texts{});
  EXPECT_EQ(verdict.outcome, Outcome::kPass);
  EXPECT_EQ(verdict.signature, "valid");
  // The verdict names the receipt, whatever is around it.
  EXPECT_EQ(verdict.sha256, Sha256Hex(PublishedReceipts().front().bytes));
  EXPECT_EQ(one.text, SignPublished(KeyOf(1)).text);
}

TEST(Dsse, WithoutAKeyTheSignatureIsNotChecked) {
  const Signed one = SignPublished(KeyOf(1));
  const ReceiptVerdict verdict = VerifyBytes(one.name, one.text);
  EXPECT_EQ(verdict.outcome, Outcome::kPass);
  EXPECT_EQ(verdict.signature, "unchecked");
}

TEST(Dsse, EachWayToBreakASignatureHasItsReason) {
  const Signed one = SignPublished(KeyOf(1));
  const PublishedReceipt published = PublishedReceipts().front();
  EXPECT_EQ(Reasons(one.name, one.text, *PublicKeyOf(KeyOf(2))),
            Texts{"signature-key /signatures/0/keyid"});
  // Another key that calls itself by the right id.
  Json envelope = Json::parse(SignPublished(KeyOf(2)).text);
  envelope["signatures"][0]["keyid"] = KeyId(one.key);
  EXPECT_EQ(Reasons(one.name, envelope.dump(), one.key),
            Texts{"signature-wrong /signatures/0/sig"});
  // One bit of the signature.
  envelope = Json::parse(one.text);
  std::string signature = *FromBase64(envelope["signatures"][0]["sig"].get<std::string>());
  signature[5] = static_cast<char>(signature[5] ^ 1);
  envelope["signatures"][0]["sig"] =
      ToBase64({reinterpret_cast<const uint8_t*>(signature.data()), signature.size()});
  EXPECT_EQ(Reasons(one.name, envelope.dump(), one.key),
            Texts{"signature-wrong /signatures/0/sig"});
  // A change to the payload.
  envelope = Json::parse(one.text);
  EditedReceipt forged(published);
  forged.context()["host"]["cores"] = 999;
  std::string payload = forged.Bytes();
  envelope["payload"] =
      ToBase64({reinterpret_cast<const uint8_t*>(payload.data()), payload.size()});
  EXPECT_EQ(Reasons(one.name, envelope.dump(), one.key),
            (Texts{"context-digest /predicate/context_sha256", "signature-payload /payload"}));
  // A payload changed and sealed again is a sound receipt that nobody signed.
  forged.SealAll();
  payload = forged.Bytes();
  envelope["payload"] =
      ToBase64({reinterpret_cast<const uint8_t*>(payload.data()), payload.size()});
  EXPECT_EQ(Reasons(one.name, envelope.dump(), one.key),
            Texts{"signature-wrong /signatures/0/sig"});
  // None at all.
  envelope = Json::parse(one.text);
  envelope["signatures"] = Json::array();
  EXPECT_EQ(Reasons(one.name, envelope.dump(), one.key), Texts{"signature-missing /signatures"});
  EXPECT_EQ(Reasons(published.name, published.bytes, one.key), Texts{"signature-missing "});
}

TEST(Dsse, OtherEnvelopesAreRefused) {
  const Signed one = SignPublished(KeyOf(1));
  const auto edited = [&](const auto& edit) {
    Json envelope = Json::parse(one.text);
    edit(envelope);
    return Reasons(one.name, envelope.dump(), one.key);
  };
  EXPECT_EQ(Reasons(one.name, "{", one.key), Texts{"envelope-malformed "});
  EXPECT_EQ(Reasons(one.name, "[]", one.key), Texts{"envelope-malformed "});
  EXPECT_EQ(edited([](Json& e) { e["note"] = 1; }), Texts{"envelope-malformed "});
  EXPECT_EQ(edited([](Json& e) { e["payload"] = 1; }), Texts{"envelope-malformed /payload"});
  EXPECT_EQ(edited([](Json& e) { e["signatures"][0]["cert"] = ""; }),
            Texts{"envelope-malformed /signatures"});
  EXPECT_EQ(edited([](Json& e) { e["payloadType"] = "text/plain"; }),
            Texts{"payload-type /payloadType"});
  EXPECT_EQ(edited([](Json& e) { e["payload"] = "%%%"; }), Texts{"payload-encoding /payload"});
  EXPECT_EQ(edited([](Json& e) { e["signatures"].push_back(e["signatures"][0]); }),
            Texts{"signature-count /signatures"});
  EXPECT_EQ(edited([](Json& e) { e["signatures"][0]["sig"] = "AAAA"; }),
            Texts{"signature-encoding /signatures/0/sig"});
}

TEST(Base64, ReadsOnlyItsOwnForm) {
  EXPECT_EQ(FromBase64("AAE="), std::string("\0\1", 2));
  EXPECT_EQ(FromBase64(""), "");
  for (const char* bad : {"AAF=", "AAE", "AAE==", "AA E=", "AAE=\n", "_-8="}) {
    EXPECT_EQ(FromBase64(bad), std::nullopt) << bad;
  }
  // Bits that no byte holds: a second text of the same byte.
  EXPECT_EQ(FromBase64("AB=="), std::nullopt);
}

class KeyFiles : public testing::Test {
 protected:
  std::string Path(const std::string& name) { return testing::TempDir() + name; }
};

TEST_F(KeyFiles, AreWrittenForTheirOwnerAndReadBack) {
  const auto paths = WriteNewKey(Path("one"));
  ASSERT_TRUE(paths.has_value()) << paths.error().ToString();
  struct stat facts {};
  ASSERT_EQ(::stat(paths->secret.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  const auto secret = ReadSecretKey(paths->secret);
  const auto open = ReadPublicKey(paths->open);
  ASSERT_TRUE(secret.has_value() && open.has_value());
  EXPECT_EQ(*PublicKeyOf(*secret), *open);
  // Another key each time.
  const auto other = WriteNewKey(Path("other"));
  ASSERT_TRUE(other.has_value());
  EXPECT_NE(*ReadPublicKey(other->open), *open);
}

TEST_F(KeyFiles, AreNeverWrittenOver) {
  ASSERT_TRUE(WriteNewKey(Path("two")).has_value());
  const auto again = WriteNewKey(Path("two"));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, Code::kIo);
  EXPECT_EQ(again.error().where.file, Path("two.key"));
  // A public key in the way: no lone secret key is left.
  std::ofstream(Path("three.pub")) << "mine";
  ASSERT_FALSE(WriteNewKey(Path("three")).has_value());
  EXPECT_FALSE(std::ifstream(Path("three.key")).good());
}

TEST_F(KeyFiles, OfAnotherFormAreRefused) {
  ASSERT_TRUE(WriteNewKey(Path("four")).has_value());
  // One kind in place of the other.
  EXPECT_EQ(ReadPublicKey(Path("four.key")).error().code, Code::kMalformed);
  ASSERT_EQ(::chmod(Path("four.key").c_str(), 0640), 0);
  EXPECT_EQ(ReadSecretKey(Path("four.key")).error().code, Code::kUnsupported);
  std::ofstream(Path("five.pub")) << "hallmark-ed25519-public AAAA\n";
  EXPECT_EQ(ReadPublicKey(Path("five.pub")).error().code, Code::kMalformed);
  EXPECT_EQ(ReadPublicKey(Path("none.pub")).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace hallmark::verify
