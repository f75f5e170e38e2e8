// SPDX-License-Identifier: Apache-2.0
#include "engine/text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include "engine/base/sha256.h"
#include "engine/text/utf8.h"

namespace hallmark {
namespace {

using Pieces = std::vector<std::string>;

Pieces Split(std::string_view text, PreTokenizer::Engine engine = PreTokenizer::Engine::kFastest) {
  const auto splitter = PreTokenizer::Make(engine);
  EXPECT_TRUE(splitter.has_value());
  std::vector<std::string_view> pieces;
  EXPECT_TRUE(splitter->Split(text, &pieces).has_value());
  return {pieces.begin(), pieces.end()};
}

TEST(PreTokenizer, JoinsLettersWithOneLeadingCharacter) {
  EXPECT_EQ(Split("one two"), (Pieces{"one", " two"}));
  EXPECT_EQ(Split("(x) _y"), (Pieces{"(x", ")", " _", "y"}));
  EXPECT_EQ(Split("a\tb"), (Pieces{"a", "\tb"}));
}

TEST(PreTokenizer, KeepsMarksInsideTheirWord) {
  EXPECT_EQ(Split("\u0928\u092E\u0938\u094D\u0924\u0947 x"),
            (Pieces{"\u0928\u092E\u0938\u094D\u0924\u0947", " x"}));
  EXPECT_EQ(Split("!\u0301!"), (Pieces{"!\u0301", "!"}));
}

TEST(PreTokenizer, GivesEachDigitItsOwnPiece) {
  EXPECT_EQ(Split("x1234 56"), (Pieces{"x", "1", "2", "3", "4", " ", "5", "6"}));
  EXPECT_EQ(Split("\u00BD\u2164"), (Pieces{"\u00BD", "\u2164"}));
}

TEST(PreTokenizer, CutsContractionsInEitherCase) {
  EXPECT_EQ(Split("don't WE'LL"), (Pieces{"don", "'t", " WE", "'LL"}));
  EXPECT_EQ(Split("'\u017F"), (Pieces{"'\u017F"}));  // long s folds to s
  EXPECT_EQ(Split("'xy"), (Pieces{"'xy"}));
}

TEST(PreTokenizer, LeavesTheLastSpaceToTheWordAndNewlinesToTheRun) {
  EXPECT_EQ(Split("a   b"), (Pieces{"a", "  ", " b"}));
  EXPECT_EQ(Split("a   "), (Pieces{"a", "   "}));
  EXPECT_EQ(Split("a \n \n  b"), (Pieces{"a", " \n \n", " ", " b"}));
  EXPECT_EQ(Split("a;\n\nb"), (Pieces{"a", ";\n\n", "b"}));
  EXPECT_EQ(Split("  1"), (Pieces{" ", " ", "1"}));
}

TEST(PreTokenizer, DoesNotTakeTheMongolianVowelSeparatorForASpace) {
  EXPECT_EQ(Split("x \u180E"), (Pieces{"x", " \u180E"}));
  EXPECT_EQ(Split("x\u2003\u3000y"), (Pieces{"x", "\u2003", "\u3000y"}));
}

// Class of a code point, found by how it joins its neighbours.
char ClassOf(const PreTokenizer& splitter, const std::string& character) {
  std::vector<std::string_view> pieces;
  const std::string after_letter = "a" + character;
  EXPECT_TRUE(splitter.Split(after_letter, &pieces).has_value());
  if (pieces.size() == 1) return 'W';
  pieces.clear();
  const std::string twice = character + character;
  EXPECT_TRUE(splitter.Split(twice, &pieces).has_value());
  if (pieces.size() == 2) return 'N';
  pieces.clear();
  const std::string after_sign = "!" + character;
  EXPECT_TRUE(splitter.Split(after_sign, &pieces).has_value());
  return pieces.size() == 2 || character == "\n" || character == "\r" ? 'S' : 'O';
}

// The reference's classes, over all scalar values in order: W for letters and marks, N, S for
// White_Space, O for the rest; taken from HF tokenizers 0.23 by splitting on each class alone.
TEST(PreTokenizer, SortsEveryCodePointAsTheReferenceDoes) {
  const auto splitter = PreTokenizer::Make();
  ASSERT_TRUE(splitter.has_value());
  std::string classes;
  int words = 0;
  int numbers = 0;
  int spaces = 0;
  for (char32_t value = 0; value < 0x110000; ++value) {
    if (value >= 0xD800 && value < 0xE000) continue;
    std::string character;
    AppendUtf8(value, &character);
    const char kind = ClassOf(*splitter, character);
    words += kind == 'W';
    numbers += kind == 'N';
    spaces += kind == 'S';
    classes.push_back(kind);
  }
  EXPECT_EQ(words, 141028 + 2501);
  EXPECT_EQ(numbers, 1911);
  EXPECT_EQ(spaces, 25);
  EXPECT_EQ(Sha256Hex(classes), "43d44b930152526665f5e25f8a05349f78d0713d326a668471a602fe07f1b476");
}

TEST(PreTokenizer, InterpretedMatchesEqualCompiledOnes) {
  std::string text;
  for (char32_t value = 1; value < 0x3100; ++value) {
    AppendUtf8(value, &text);
    if (value % 3 == 0) text += " 'll\n";
    if (value % 7 == 0) text += "  \t x\u0301";
  }
  const Pieces compiled = Split(text);
  EXPECT_GT(compiled.size(), 10000u);
  EXPECT_EQ(compiled, Split(text, PreTokenizer::Engine::kInterpreter));
  std::string joined;
  for (const std::string& piece : compiled) joined += piece;
  EXPECT_EQ(joined, text);
}

}  // namespace
}  // namespace hallmark
