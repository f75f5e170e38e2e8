// SPDX-License-Identifier: Apache-2.0
#include "engine/text/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

namespace hallmark {
namespace {

TEST(ByteAlphabet, SpellsEveryByteDifferentlyAndBack) {
  std::set<std::string> spellings;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string spelling = SpellByte(static_cast<uint8_t>(byte));
    spellings.insert(spelling);
    EXPECT_EQ(UnspellBytes(spelling), std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(spellings.size(), 256u);
}

TEST(ByteAlphabet, HasTheKnownCharacters) {
  EXPECT_EQ(SpellBytes(" a\n\t"), "\u0120a\u010A\u0109");
  EXPECT_EQ(SpellByte(0x00), "\u0100");
  EXPECT_EQ(SpellByte(0x7F), "\u0121");
  EXPECT_EQ(SpellByte(0xA0), "\u0142");
  EXPECT_EQ(SpellByte(0xAD), "\u0143");
  EXPECT_EQ(SpellByte(0xFF), "\u00FF");
}

TEST(ByteAlphabet, RefusesCharactersOutsideIt) {
  EXPECT_EQ(UnspellBytes(" "), std::nullopt);
  EXPECT_EQ(UnspellBytes("\u00AD"), std::nullopt);
  EXPECT_EQ(UnspellBytes("\u0144"), std::nullopt);
  EXPECT_EQ(UnspellBytes("a\u4E2D"), std::nullopt);
  EXPECT_EQ(UnspellBytes(""), "");
}

}  // namespace
}  // namespace hallmark
