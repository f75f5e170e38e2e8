// SPDX-License-Identifier: Apache-2.0
#include "engine/text/normalizer.h"

#include <gtest/gtest.h>

namespace hallmark {
namespace {

std::string Nfc(std::string_view text) {
  auto result = NormalizeNfc(text);
  EXPECT_TRUE(result.has_value());
  return result.value_or("");
}

TEST(Normalizer, ComposesLettersAndMarks) {
  EXPECT_EQ(Nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(Nfc("A\u030A"), "\u00C5");
  EXPECT_EQ(Nfc("\u212B"), "\u00C5");  // a singleton decomposition is never undone
  EXPECT_EQ(Nfc("\u1E9B\u0323"), "\u1E9B\u0323");
  EXPECT_EQ(Nfc("\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(Nfc("\u0344"), "\u0308\u0301");  // excluded from composition
  EXPECT_EQ(Nfc("\u0958"), "\u0915\u093C");
}

TEST(Normalizer, OrdersMarksByClassAndKeepsEqualClassesInOrder) {
  EXPECT_EQ(Nfc("x\u0315\u0300\u05AE\u0334"), "x\u0334\u05AE\u0300\u0315");
  EXPECT_EQ(Nfc("x\u0302\u0301"), "x\u0302\u0301");
  EXPECT_EQ(Nfc("x\u0301\u0302"), "x\u0301\u0302");
  EXPECT_EQ(Nfc("a\u0323\u0302"), "\u1EAD");
  EXPECT_EQ(Nfc("a\u0302\u0323"), "\u1EAD");
}

TEST(Normalizer, LeavesPlainTextAlone) {
  for (const std::string text : {"", "plain", "na\u00EFve", "\u4E2D\u6587", "\U0001F642"}) {
    EXPECT_EQ(Nfc(text), text);
  }
  EXPECT_EQ(Nfc(std::string_view("\0x", 2)), std::string("\0x", 2));
}

TEST(Normalizer, LeavesCodePointsYoungerThanUnicode9WhereTheyAre) {
  // U+1AC0 came with Unicode 13 as a mark of class 220: newer data would let the acute pass it.
  EXPECT_EQ(Nfc("a\u1AC0\u0301"), "a\u1AC0\u0301");
  EXPECT_EQ(Nfc("a\u0301\u1AC0"), "\u00E1\u1AC0");
  EXPECT_EQ(Nfc("\u1AC0\u0334"), "\u1AC0\u0334");
  // Unicode 13's U+11938 composes from these two.
  EXPECT_EQ(Nfc("\U00011935\U00011930"), "\U00011935\U00011930");
  EXPECT_EQ(Nfc("\U00011938"), "\U00011938");
}

TEST(Normalizer, RefusesIllFormedTextWithTheOffset) {
  const auto result = NormalizeNfc("e\u0301\xFF");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Code::kMalformed);
  EXPECT_EQ(result.error().where, (Locator{.byte = 3}));
}

}  // namespace
}  // namespace hallmark
