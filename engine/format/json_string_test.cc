// SPDX-License-Identifier: Apache-2.0
#include "engine/format/json_string.h"

#include <gtest/gtest.h>

namespace hallmark {
namespace {

std::string Decoded(const std::string& quoted) {
  const JsonStringScan scan = SkipJsonString(quoted, 0);
  EXPECT_EQ(scan.problem, nullptr) << quoted;
  EXPECT_EQ(scan.end, quoted.size());
  return JsonString{std::string_view(quoted).substr(1, quoted.size() - 2)}.Decode();
}

TEST(JsonString, DecodesEveryEscape) {
  EXPECT_EQ(Decoded(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(Decoded(R"("\u0041\u00e9\u20AC\ud83d\ude00")"), "A\u00e9\u20ac\U0001F600");
  EXPECT_EQ(Decoded("\"\u00e9\u20ac\U0001F600\""), "\u00e9\u20ac\U0001F600");
  EXPECT_EQ(Decoded(R"("\u0000")"), std::string(1, '\0'));
}

TEST(JsonString, RefusesWhatIsNotAStringAtItsByte) {
  struct Case {
    std::string text;
    size_t byte;
  };
  const Case cases[] = {
      {"\"ab", 3},
      {"\"a\nb\"", 2},
      {R"("a\x")", 2},
      {R"("\u12g4")", 1},
      {R"("\ud800")", 1},
      {R"("\ud800\u0041")", 1},
      {R"("\udc00")", 1},
      {"\"a\xff\"", 2},
      {"\"\xc0\x80\"", 1},
      {"\"\xed\xa0\x80\"", 1},
      {"\"\xf4\x90\x80\x80\"", 1},
      {"\"\xe2\x82\"", 1},
      {"\"\\", 1},
      {"\"\\u00", 1},
      {"\"\\ud83d\\", 1},
  };
  for (const Case& c : cases) {
    const JsonStringScan scan = SkipJsonString(c.text, 0);
    EXPECT_NE(scan.problem, nullptr) << c.text;
    EXPECT_EQ(scan.end, c.byte) << c.text;
  }
}

TEST(JsonString, ComparesWhatTheTextMeans) {
  const auto compare = [](std::string_view a, std::string_view b) {
    return CompareJsonStrings({a}, {b});
  };
  EXPECT_EQ(compare("abc", R"(\u0061bc)"), 0);
  EXPECT_EQ(compare(R"(\ud83d\ude00)", "\U0001F600"), 0);
  EXPECT_EQ(HashJsonString({"abc"}), HashJsonString({R"(\u0061bc)"}));
  EXPECT_LT(compare("ab", R"(a\u0062c)"), 0);
  EXPECT_GT(compare(R"(b\/)", "b"), 0);
  EXPECT_LT(compare("A", "a"), 0);
  EXPECT_GT(compare("\u00e9", R"(\u007f)"), 0);
}

TEST(JsonString, CutsAtACharacter) {
  EXPECT_EQ(JsonString{"ab\u20ac"}.Decode(4), "ab");
  EXPECT_EQ(JsonString{"ab\u20ac"}.Decode(5), "ab\u20ac");
}

}  // namespace
}  // namespace hallmark
