// SPDX-License-Identifier: Apache-2.0
#include "engine/text/added_tokens.h"

#include <gtest/gtest.h>

namespace hallmark {
namespace {

using Pair = std::pair<std::string, int32_t>;
using Pairs = std::vector<Pair>;

constexpr int32_t kText = AddedTokenMatcher::kText;

Pairs Split(const AddedTokenMatcher& matcher, std::string_view text, bool parse_special = true) {
  Pairs pairs;
  for (const auto& part : matcher.Split(text, parse_special)) {
    pairs.emplace_back(part.text, part.id);
  }
  return pairs;
}

AddedTokenMatcher Matcher() {
  return AddedTokenMatcher({{.content = "<|end|>", .id = 1, .special = true},
                            {.content = "<|end|>!", .id = 2, .special = true},
                            {.content = "<|", .id = 3, .special = false},
                            {.content = "think", .id = 4, .special = false}});
}

TEST(AddedTokens, SplitsTextAroundTokens) {
  EXPECT_EQ(Split(Matcher(), "a<|end|>b"), (Pairs{{"a", kText}, {"<|end|>", 1}, {"b", kText}}));
  EXPECT_EQ(Split(Matcher(), "<|end|><|end|>"), (Pairs{{"<|end|>", 1}, {"<|end|>", 1}}));
  EXPECT_EQ(Split(Matcher(), ""), Pairs{});
  EXPECT_EQ(Split(Matcher(), "plain"), (Pairs{{"plain", kText}}));
}

TEST(AddedTokens, PrefersTheLongestAtTheLeftmostPlace) {
  EXPECT_EQ(Split(Matcher(), "<|end|>!?"), (Pairs{{"<|end|>!", 2}, {"?", kText}}));
  EXPECT_EQ(Split(Matcher(), "<|end|"), (Pairs{{"<|", 3}, {"end|", kText}}));
  EXPECT_EQ(Split(Matcher(), "<<|"), (Pairs{{"<", kText}, {"<|", 3}}));
}

TEST(AddedTokens, LeavesSpecialTokensAsTextWhenAskedTo) {
  EXPECT_EQ(Split(Matcher(), "x<|end|>think", false), (Pairs{{"x<|end|>", kText}, {"think", 4}}));
  // The special match hides the shorter token that it starts with.
  EXPECT_EQ(Split(Matcher(), "<|end|>", false), (Pairs{{"<|end|>", kText}}));
}

TEST(AddedTokens, MatchesBytesAboveAscii) {
  const AddedTokenMatcher matcher({{.content = "\u4E2D", .id = 7}, {.content = "\u00E9", .id = 8}});
  EXPECT_EQ(Split(matcher, "\u00E9\u4E2Dz"), (Pairs{{"\u00E9", 8}, {"\u4E2D", 7}, {"z", kText}}));
}

}  // namespace
}  // namespace hallmark
