// SPDX-License-Identifier: Apache-2.0
// Clause: text-exact
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "engine/text/normalizer.h"
#include "engine/text/streaming_decoder.h"
#include "engine/text/tiny_tokenizer.h"
#include "engine/text/unicode_gen.h"
#include "engine/text/utf8.h"

namespace hallmark {
namespace {

const Tokenizer& Tiny() {
  static const Tokenizer* const kTokenizer = new Tokenizer(TinyTokenizer());
  return *kTokenizer;
}

RC_GTEST_PROP(TokenizerProperty, DecodingAnEncodingGivesTheNormalText, ()) {
  const std::string text = DrawUnicodeText();
  const auto ids = Tiny().Encode(text);
  RC_ASSERT(ids.has_value());
  RC_ASSERT(Tiny().Decode(*ids, SpecialTokens::kShow).value() == NormalizeNfc(text).value());
}

RC_GTEST_PROP(TokenizerProperty, PiecesJoinToTheTextOnBothEngines, ()) {
  const std::string text = DrawUnicodeText();
  std::vector<std::string_view> compiled;
  std::vector<std::string_view> interpreted;
  RC_ASSERT(PreTokenizer::Make()->Split(text, &compiled).has_value());
  RC_ASSERT(PreTokenizer::Make(PreTokenizer::Engine::kInterpreter)
                ->Split(text, &interpreted)
                .has_value());
  RC_ASSERT(compiled == interpreted);
  std::string joined;
  for (const std::string_view piece : compiled) {
    RC_ASSERT(!piece.empty());
    joined += piece;
  }
  RC_ASSERT(joined == text);
}

RC_GTEST_PROP(StreamingDecoderProperty, PushesAndFlushTogetherAreTheWholeText, ()) {
  const auto ids =
      *rc::gen::container<std::vector<int32_t>>(rc::gen::inRange<int32_t>(0, kTinyVocab));
  const SpecialTokens specials = *rc::gen::element(SpecialTokens::kSkip, SpecialTokens::kShow);
  StreamingDecoder decoder(&Tiny(), specials);
  std::string streamed;
  std::string bytes;
  for (const int32_t id : ids) {
    const std::string pushed = decoder.Push(id).value();
    RC_ASSERT(!FirstIllFormedByte(pushed).has_value());
    streamed += pushed;
    if (specials == SpecialTokens::kShow || !Tiny().IsSpecial(id)) bytes += Tiny().TokenBytes(id);
  }
  streamed += decoder.Flush();
  // The same bytes mended at one go.
  Utf8Joiner joiner;
  std::string whole;
  joiner.Push(bytes, &whole);
  joiner.Flush(&whole);
  RC_ASSERT(streamed == whole);
  RC_ASSERT(Tiny().Decode(ids, specials).value() == whole);
}

// Cut bytes, not ids: the joiner's result is the same wherever its input was cut.
RC_GTEST_PROP(StreamingDecoderProperty, AnyCutOfTheBytesGivesTheSameText, ()) {
  const std::string bytes = *rc::gen::container<std::string>(rc::gen::oneOf(
      rc::gen::arbitrary<char>(), rc::gen::element('\xE2', '\x82', '\xAC', '\xF0', '\x9F', 'a')));
  Utf8Joiner whole;
  std::string expected;
  whole.Push(bytes, &expected);
  whole.Flush(&expected);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    Utf8Joiner joiner;
    std::string text;
    joiner.Push(std::string_view(bytes).substr(0, cut), &text);
    RC_ASSERT(!FirstIllFormedByte(text).has_value());
    joiner.Push(std::string_view(bytes).substr(cut), &text);
    joiner.Flush(&text);
    RC_ASSERT(text == expected);
  }
}

}  // namespace
}  // namespace hallmark
