// SPDX-License-Identifier: Apache-2.0
#include "engine/text/tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/text/tiny_tokenizer.h"

namespace hallmark {
namespace {

using Ids = std::vector<int32_t>;

Ids Encode(std::string_view text, EncodeOptions options = {}) {
  const auto ids = TinyTokenizer().Encode(text, options);
  EXPECT_TRUE(ids.has_value());
  return ids.value_or(Ids{});
}

TEST(Tokenizer, MergesWithinPiecesOnly) {
  EXPECT_EQ(Encode("the the"), (Ids{kTinyThe, kTinySpaceThe}));
  EXPECT_EQ(Encode("t he"), (Ids{'t', ' ', 'h', 'e'}));
  EXPECT_EQ(Encode("aaaaaaa"), (Ids{kTinyAaaa, kTinyAa, 'a'}));
  EXPECT_EQ(Encode(""), Ids{});
}

TEST(Tokenizer, NormalisesBeforeMerging) { EXPECT_EQ(Encode("e\u0301"), (Ids{0xC3, 0xA9})); }

TEST(Tokenizer, FindsAddedTokensBeforeAndAfterNfc) {
  EXPECT_EQ(Encode("th<|end|>e"), (Ids{kTinyTh, kTinyEnd, 'e'}));
  EXPECT_EQ(Encode("<think>"), Ids{kTinyThink});
  EXPECT_EQ(Encode("\u00C5x"), Ids{kTinyNormalized});
  EXPECT_EQ(Encode("A\u030Ax!"), (Ids{kTinyNormalized, '!'}));
  // NFC does not reach across a token: the mark would otherwise join the '>'.
  EXPECT_EQ(Encode("<think>\u0338"), (Ids{kTinyThink, 0xCC, 0xB8}));
}

TEST(Tokenizer, TakesSpecialTokensForTextWhenAskedTo) {
  EXPECT_EQ(Encode("<|end|>", {.parse_special = false}), (Ids{'<', '|', 'e', 'n', 'd', '|', '>'}));
  EXPECT_EQ(Encode("<think>", {.parse_special = false}), Ids{kTinyThink});
}

TEST(Tokenizer, RefusesIllFormedTextWithTheOffsetInTheWholeText) {
  const auto ids = TinyTokenizer().Encode("ab<|end|>c\xC3(");
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code, Code::kMalformed);
  EXPECT_EQ(ids.error().where, (Locator{.byte = 10}));
}

TEST(Tokenizer, RefusesTextsAboveTheLimit) {
  const auto ids = TinyTokenizer().Encode(std::string(kMaxTextBytes + 1, 'a'));
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code, Code::kOutOfRange);
}

TEST(Tokenizer, DecodesWithAndWithoutSpecialTokens) {
  const Tokenizer tokenizer = TinyTokenizer();
  const Ids ids = {kTinyThe, kTinyEnd, kTinyThink, kTinySpaceThe};
  EXPECT_EQ(tokenizer.Decode(ids).value(), "the<think> the");
  EXPECT_EQ(tokenizer.Decode(ids, SpecialTokens::kShow).value(), "the<|end|><think> the");
}

TEST(Tokenizer, DecodesBrokenBytesAsReplacementCharacters) {
  const Tokenizer tokenizer = TinyTokenizer();
  EXPECT_EQ(tokenizer.Decode(Ids{0xE2, 0x82}).value(), "\uFFFD");
  EXPECT_EQ(tokenizer.Decode(Ids{0xFF, 'a', 0x80}).value(), "\uFFFDa\uFFFD");
  // A skipped token does not come between the bytes of a character, a shown one does.
  EXPECT_EQ(tokenizer.Decode(Ids{0xC3, kTinyEnd, 0xA9}).value(), "\u00E9");
  EXPECT_EQ(tokenizer.Decode(Ids{0xC3, kTinyEnd, 0xA9}, SpecialTokens::kShow).value(),
            "\uFFFD<|end|>\uFFFD");
}

TEST(Tokenizer, RefusesToDecodeIdsWithoutAToken) {
  const Tokenizer tokenizer = TinyTokenizer();
  for (const int32_t id : {-1, kTinyVocab, 1 << 30}) {
    const auto text = tokenizer.Decode(Ids{'a', id});
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().code, Code::kOutOfRange);
    EXPECT_FALSE(tokenizer.Contains(id));
    EXPECT_FALSE(tokenizer.IsSpecial(id));
  }
}

TEST(Tokenizer, LooksUpTokens) {
  const Tokenizer tokenizer = TinyTokenizer();
  EXPECT_EQ(tokenizer.vocab_size(), kTinyVocab);
  EXPECT_EQ(tokenizer.AddedTokenId("<|end|>"), kTinyEnd);
  EXPECT_EQ(tokenizer.AddedTokenId("the"), std::nullopt);
  EXPECT_EQ(tokenizer.TokenBytes(kTinySpaceThe), " the");
  EXPECT_EQ(tokenizer.TokenBytes(0xFF), "\xFF");
  EXPECT_TRUE(tokenizer.IsSpecial(kTinyEnd));
  EXPECT_FALSE(tokenizer.IsSpecial(kTinyThink));
  EXPECT_EQ(tokenizer.added_tokens().size(), 3u);
}

TEST(Tokenizer, OpensAFileAndNamesItInRefusals) {
  const std::string path = testing::TempDir() + "/tiny_tokenizer.json";
  std::ofstream(path) << TinyTokenizerJson().dump();
  const auto tokenizer = Tokenizer::Open(path);
  ASSERT_TRUE(tokenizer.has_value());
  EXPECT_EQ(tokenizer->Encode("the").value(), Ids{kTinyThe});

  std::ofstream(path) << "{\"version\": \"1.0\", \"version\": \"1.0\"}";
  const auto twice = Tokenizer::Open(path);
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().code, Code::kMalformed);
  EXPECT_EQ(twice.error().where.file, path);
  EXPECT_EQ(Tokenizer::Open(path + ".absent").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace hallmark
