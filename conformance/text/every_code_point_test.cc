// SPDX-License-Identifier: Apache-2.0
// The scribe tokenizer hides most piece boundaries: it has no merges across them. Here each pair of
// bytes has a token, so that a boundary in another place gives other ids.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "conformance/harness/paths.h"
#include "engine/base/json.h"
#include "engine/base/random.h"
#include "engine/base/sha256.h"
#include "engine/text/byte_alphabet.h"
#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"

namespace hallmark {
namespace {

// What the reference gives; plan.md says how it was made.
struct Plane {
  uint32_t number;
  size_t ids;
  const char* sha256;
};

void PrintTo(const Plane& plane, std::ostream* out) { *out << "plane " << plane.number; }

// The scribe file with another model: byte b is token b, the pair a b is token 256 + 256 a + b, and
// pairs rank in that order.
Json PairTokenizerJson() {
  Json document = ReadJsonFile(GoldenPath("models/scribe-11m-exl3/tokenizer.json")).value();
  Json vocab = Json::object();
  Json merges = Json::array();
  for (int a = 0; a < 256; ++a) {
    const std::string left = SpellByte(static_cast<uint8_t>(a));
    vocab[left] = a;
    for (int b = 0; b < 256; ++b) {
      const std::string right = SpellByte(static_cast<uint8_t>(b));
      vocab[left + right] = 256 + 256 * a + b;
      merges.push_back(left + " " + right);
    }
  }
  document["added_tokens"] = Json::array();
  document["model"]["vocab"] = std::move(vocab);
  document["model"]["merges"] = std::move(merges);
  return document;
}

// Encodes with the pair tokenizer and hashes all ids.
class IdHash {
 public:
  IdHash() : tokenizer_(Tokenizer::FromJson(PairTokenizerJson(), "pairs").value()) {}

  void Add(const std::string& text) {
    const std::vector<int32_t> ids = tokenizer_.Encode(text).value();
    hash_.Update(std::as_bytes(std::span(ids)));
    count_ += ids.size();
  }
  size_t count() const { return count_; }
  std::string Finish() { return Hex(hash_.Finish()); }

 private:
  Tokenizer tokenizer_;
  Sha256 hash_;
  size_t count_ = 0;
};

class EveryCodePoint : public testing::TestWithParam<Plane> {};

TEST_P(EveryCodePoint, InTenSurroundingsGivesTheReferencesIds) {
  IdHash hash;
  const uint32_t first = GetParam().number << 16;
  for (uint32_t value = first; value < first + 0x10000; ++value) {
    if (value >= 0xD800 && value < 0xE000) continue;
    std::string x;
    AppendUtf8(value, &x);
    hash.Add("a" + x + "1" + x + " " + x + "\n" + x + "!" + x + "\u0316" + x + "\u0301\u0334'" + x +
             "a");
  }
  EXPECT_EQ(hash.count(), GetParam().ids);
  EXPECT_EQ(hash.Finish(), GetParam().sha256);
}

INSTANTIATE_TEST_SUITE_P(
    Reference, EveryCodePoint,
    testing::Values(
        Plane{0, 1332776, "40e8df5a1399ec7eeb8a7685834bf6d9db25056ed67c413f5668d173a9b0dc27"},
        Plane{1, 1699921, "1015d27d1f9df616f20d59c01d15510fd1747a762e50209bdd27f59ceabf24ae"},
        Plane{2, 1640685, "6b9a1faa192fa4ed0948aac710f09f9b9e560aa16f13d96ab63697818c66786e"},
        Plane{3, 1626350, "f13432a5bcc92cbcbdbaf703986807a6bfa4868f1068c0a018653ccf79354858"},
        Plane{14, 1673908, "5039a133699d35c1dfc0b39e5b97cc99a5b524909f605c2979a0315fe9ce33cf"},
        Plane{15, 1627888, "efffa216bd3cd856358e4c582c8cf10368d5cd4ba6f2a41bcbeb63818ca9db2a"},
        Plane{16, 1753072, "f03ce629320035ac1d2cb2f98f22bf867b0b5c68f5b7957cbfb8db7cc0689cac"}),
    [](const auto& info) { return "Plane" + std::to_string(info.param.number); });

TEST(HardMixtures, OfSpacesMarksAndContractionsGiveTheReferencesIds) {
  constexpr char32_t kAlphabet[] = {
      0x61,   0x53,   0x73,   0x4C,    0x6C,   0x76,    0x65,    0x27,    0x27,   0x20,   0x20,
      0x20,   0x0A,   0x0A,   0x0D,    0x09,   0x85,    0xA0,    0x180E,  0x2028, 0x3000, 0x31,
      0x661,  0xBD,   0x21,   0x2E,    0x5F,   0x301,   0x316,   0x1AC0,  0xE9,   0x17F,  0x4E2D,
      0x1100, 0x1161, 0x11A8, 0x1F642, 0x200D, 0x10EFD, 0x10D40, 0x31350, 0xAD,   0x212A, 0x00};
  IdHash hash;
  SplitMix64 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    const uint64_t length = 1 + random.Below(16);
    for (uint64_t k = 0; k < length; ++k) {
      AppendUtf8(kAlphabet[random.Below(std::size(kAlphabet))], &text);
    }
    hash.Add(text);
  }
  EXPECT_EQ(hash.count(), 200981u);
  EXPECT_EQ(hash.Finish(), "1a2ea416a61487997416e16755ab4bf13e8173776a7bcc4c38397c26dc16343d");
}

}  // namespace
}  // namespace hallmark
