// SPDX-License-Identifier: Apache-2.0
#include "engine/text/streaming_decoder.h"

#include <gtest/gtest.h>

#include "engine/text/tiny_tokenizer.h"

namespace hallmark {
namespace {

TEST(StreamingDecoder, WaitsForTheRestOfACharacter) {
  const Tokenizer tokenizer = TinyTokenizer();
  StreamingDecoder decoder(&tokenizer);
  EXPECT_EQ(decoder.Push('a').value(), "a");
  EXPECT_EQ(decoder.Push(0xF0).value(), "");
  EXPECT_EQ(decoder.Push(0x9F).value(), "");
  EXPECT_EQ(decoder.Push(0x99).value(), "");
  EXPECT_EQ(decoder.Push(0x82).value(), "\U0001F642");
  EXPECT_EQ(decoder.Flush(), "");
}

TEST(StreamingDecoder, ReplacesABrokenCharacterAsSoonAsItIsKnownToBeOne) {
  const Tokenizer tokenizer = TinyTokenizer();
  StreamingDecoder decoder(&tokenizer);
  EXPECT_EQ(decoder.Push(0xE2).value(), "");
  EXPECT_EQ(decoder.Push(kTinyThe).value(), "\uFFFDthe");
  EXPECT_EQ(decoder.Push(0xE2).value(), "");
  EXPECT_EQ(decoder.Flush(), "\uFFFD");
  EXPECT_EQ(decoder.Flush(), "");
}

TEST(StreamingDecoder, SkipsOrShowsSpecialTokens) {
  const Tokenizer tokenizer = TinyTokenizer();
  StreamingDecoder skipping(&tokenizer);
  EXPECT_EQ(skipping.Push(kTinyEnd).value(), "");
  EXPECT_EQ(skipping.Push(kTinyThink).value(), "<think>");
  StreamingDecoder showing(&tokenizer, SpecialTokens::kShow);
  EXPECT_EQ(showing.Push(kTinyEnd).value(), "<|end|>");
}

TEST(StreamingDecoder, RefusesAnIdWithoutATokenAndGoesOn) {
  const Tokenizer tokenizer = TinyTokenizer();
  StreamingDecoder decoder(&tokenizer);
  EXPECT_EQ(decoder.Push(0xC3).value(), "");
  EXPECT_EQ(decoder.Push(kTinyVocab).error().code, Code::kOutOfRange);
  EXPECT_EQ(decoder.Push(0xA9).value(), "\u00E9");
}

}  // namespace
}  // namespace hallmark
