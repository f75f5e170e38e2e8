// SPDX-License-Identifier: Apache-2.0
#include "engine/text/utf8.h"

#include <gtest/gtest.h>

namespace hallmark {
namespace {

std::string Mended(std::string_view bytes, size_t cut) {
  Utf8Joiner joiner;
  std::string text;
  joiner.Push(bytes.substr(0, cut), &text);
  joiner.Push(bytes.substr(cut), &text);
  joiner.Flush(&text);
  return text;
}

TEST(Utf8, EveryScalarValueSurvivesWritingAndReading) {
  int count = 0;
  for (char32_t value = 0; value < 0x110000; ++value) {
    if (value >= 0xD800 && value < 0xE000) continue;
    std::string text;
    AppendUtf8(value, &text);
    const Utf8Step step = ReadUtf8(text);
    ASSERT_EQ(step.kind, Utf8Step::Kind::kCharacter);
    ASSERT_EQ(step.code_point, value);
    ASSERT_EQ(static_cast<size_t>(step.length), text.size());
    ++count;
  }
  EXPECT_EQ(count, 0x110000 - 0x800);
}

TEST(Utf8, AcceptsExactlyTheScalarValuesAmongAllFourByteStrings) {
  // Every lead byte with every second byte; the tail is fixed and good.
  int whole = 0;
  for (int lead = 0x80; lead < 0x100; ++lead) {
    for (int second = 0; second < 0x100; ++second) {
      const std::string text = {static_cast<char>(lead), static_cast<char>(second), '\x80', '\x80'};
      const Utf8Step step = ReadUtf8(text);
      if (step.kind != Utf8Step::Kind::kCharacter) continue;
      ++whole;
      std::string again;
      AppendUtf8(step.code_point, &again);
      ASSERT_EQ(again, text.substr(0, step.length));
    }
  }
  // 30 two-byte leads, 16 three-byte leads less two halves, 5 four-byte leads less 16 and 48.
  EXPECT_EQ(whole, 30 * 64 + 16 * 64 - 64 + 5 * 64 - 64);
}

TEST(Utf8, TellsWhereTextStopsBeingWellFormed) {
  EXPECT_EQ(FirstIllFormedByte(""), std::nullopt);
  EXPECT_EQ(FirstIllFormedByte("a\u00E9\u20AC\U0001F642"), std::nullopt);
  EXPECT_EQ(FirstIllFormedByte("ab\x80"), 2u);
  EXPECT_EQ(FirstIllFormedByte("\xC0\x80"), 0u);          // overlong
  EXPECT_EQ(FirstIllFormedByte("x\xED\xA0\x80"), 1u);     // surrogate
  EXPECT_EQ(FirstIllFormedByte("\xF4\x90\x80\x80"), 0u);  // past U+10FFFF
  EXPECT_EQ(FirstIllFormedByte("\u20AC\xE2\x82"), 3u);    // cut short
}

TEST(Utf8Joiner, ReplacesEachMaximalSubpartOnce) {
  const std::string broken =
      "a\xF1\x80\x80\xE1\x80\xC2"
      "b\x80"
      "c\x80\xBF"
      "d";
  const std::string mended =
      "a\uFFFD\uFFFD\uFFFD"
      "b\uFFFD"
      "c\uFFFD\uFFFD"
      "d";
  for (size_t cut = 0; cut <= broken.size(); ++cut) EXPECT_EQ(Mended(broken, cut), mended) << cut;
}

TEST(Utf8Joiner, ReplacesAnUnfinishedCharacterAtTheEnd) {
  for (const std::string tail : {"\xC3", "\xE2\x82", "\xF0\x9F\x99"}) {
    for (size_t cut = 0; cut <= tail.size(); ++cut) EXPECT_EQ(Mended(tail, cut), "\uFFFD");
  }
}

TEST(Utf8Joiner, HoldsBackHalfACharacter) {
  Utf8Joiner joiner;
  std::string text;
  const std::string euro = "\u20AC";
  joiner.Push(euro.substr(0, 1), &text);
  joiner.Push(euro.substr(1, 1), &text);
  EXPECT_EQ(text, "");
  joiner.Push(euro.substr(2), &text);
  EXPECT_EQ(text, euro);
  joiner.Flush(&text);
  EXPECT_EQ(text, euro);
}

}  // namespace
}  // namespace hallmark
