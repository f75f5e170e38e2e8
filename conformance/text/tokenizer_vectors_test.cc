// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "conformance/harness/paths.h"
#include "engine/base/json.h"
#include "engine/text/normalizer.h"
#include "engine/text/streaming_decoder.h"

namespace hallmark {
namespace {

using Ids = std::vector<int32_t>;

struct Case {
  std::string text;
  Ids ids;
};

class TokenizerVectors : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto opened = Tokenizer::Open(GoldenPath("models/scribe-11m-exl3/tokenizer.json"));
    ASSERT_TRUE(opened.has_value()) << opened.error().ToString();
    tokenizer_ = new Tokenizer(*std::move(opened));
    const auto document = ReadJsonFile(GoldenPath("text/tokenizer_vectors.json"));
    ASSERT_TRUE(document.has_value()) << document.error().ToString();
    cases_ = new std::vector<Case>;
    for (const Json& item : (*document)["cases"]) {
      cases_->push_back({item["text"].get<std::string>(), item["ids"].get<Ids>()});
    }
  }
  static void TearDownTestSuite() {
    delete tokenizer_;
    delete cases_;
  }

  static inline const Tokenizer* tokenizer_ = nullptr;
  static inline std::vector<Case>* cases_ = nullptr;
};

TEST_F(TokenizerVectors, EveryStringGivesThePublishedIds) {
  size_t ids = 0;
  size_t with_specials = 0;
  for (size_t i = 0; i < cases_->size(); ++i) {
    const Case& one = (*cases_)[i];
    const auto found = tokenizer_->Encode(one.text);
    ASSERT_TRUE(found.has_value()) << i;
    EXPECT_EQ(*found, one.ids) << "case " << i << ": " << testing::PrintToString(one.text);
    ids += one.ids.size();
    with_specials += std::any_of(one.ids.begin(), one.ids.end(),
                                 [](int32_t id) { return tokenizer_->IsSpecial(id); });
  }
  EXPECT_EQ(cases_->size(), 1200u);
  EXPECT_EQ(ids, 51383u);
  EXPECT_EQ(with_specials, 3u);
}

TEST_F(TokenizerVectors, DecodingGivesTheTextBackInNfc) {
  size_t compared = 0;
  size_t changed_by_nfc = 0;
  for (const Case& one : *cases_) {
    // NFC stops at added tokens, so only strings without one have a normal form as a whole.
    if (std::any_of(one.ids.begin(), one.ids.end(),
                    [](int32_t id) { return tokenizer_->IsSpecial(id); })) {
      continue;
    }
    const std::string normal = NormalizeNfc(one.text).value();
    EXPECT_EQ(tokenizer_->Decode(one.ids).value(), normal);
    changed_by_nfc += normal != one.text;
    ++compared;
  }
  EXPECT_EQ(compared, 1200u - 3u);
  EXPECT_GT(changed_by_nfc, 20u);
}

TEST_F(TokenizerVectors, StreamedTextIsTheWholeText) {
  size_t held_back = 0;
  for (const Case& one : *cases_) {
    StreamingDecoder decoder(tokenizer_, SpecialTokens::kShow);
    std::string streamed;
    std::string bytes;
    for (const int32_t id : one.ids) {
      bytes += tokenizer_->TokenBytes(id);
      const std::string pushed = decoder.Push(id).value();
      held_back += pushed.empty();
      streamed += pushed;
    }
    streamed += decoder.Flush();
    EXPECT_EQ(streamed, bytes);  // whole strings were encoded, so their bytes are well-formed
    EXPECT_EQ(tokenizer_->Decode(one.ids, SpecialTokens::kShow).value(), bytes);
  }
  EXPECT_GT(held_back, 1000u);
}

TEST_F(TokenizerVectors, SpecialsInTextStayTextWhenNotParsed) {
  size_t differ = 0;
  for (const Case& one : *cases_) {
    const auto ids = tokenizer_->Encode(one.text, {.parse_special = false});
    ASSERT_TRUE(ids.has_value());
    for (const int32_t id : *ids) EXPECT_FALSE(tokenizer_->IsSpecial(id)) << id;
    // Every added token of this tokenizer is special, so the text is normalised as a whole.
    EXPECT_EQ(tokenizer_->Decode(*ids).value(), NormalizeNfc(one.text).value());
    differ += *ids != one.ids;
  }
  EXPECT_GE(differ, 3u);
}

}  // namespace
}  // namespace hallmark
