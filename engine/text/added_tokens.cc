// SPDX-License-Identifier: Apache-2.0
#include "engine/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace hallmark {

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    CHECK(!tokens_[i].content.empty());
    CHECK(i == 0 || tokens_[i - 1].content != tokens_[i].content);
  }
}

const AddedToken* AddedTokenMatcher::LongestAt(std::string_view text) const {
  const AddedToken* longest = nullptr;
  // The tokens that share the first `depth` bytes of `text` are neighbours; a token of exactly
  // that length comes first among them.
  auto begin = tokens_.begin();
  auto end = tokens_.end();
  for (size_t depth = 0; begin != end && depth < text.size(); ++depth) {
    const auto byte_at = [depth](const AddedToken& token) {
      return depth < token.content.size() ? static_cast<uint8_t>(token.content[depth]) : -1;
    };
    const int wanted = static_cast<uint8_t>(text[depth]);
    begin = std::partition_point(begin, end,
                                 [&](const AddedToken& token) { return byte_at(token) < wanted; });
    end = std::partition_point(begin, end,
                               [&](const AddedToken& token) { return byte_at(token) == wanted; });
    if (begin != end && begin->content.size() == depth + 1) longest = &*begin;
  }
  return longest;
}

std::vector<AddedTokenMatcher::Part> AddedTokenMatcher::Split(std::string_view text,
                                                              bool parse_special) const {
  std::vector<Part> parts;
  size_t text_start = 0;
  size_t at = 0;
  while (at < text.size()) {
    const AddedToken* token = LongestAt(text.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    const size_t end = at + token->content.size();
    if (parse_special || !token->special) {
      if (text_start < at) parts.push_back({text.substr(text_start, at - text_start), kText});
      parts.push_back({text.substr(at, end - at), token->id});
      text_start = end;
    }
    at = end;
  }
  if (text_start < text.size()) parts.push_back({text.substr(text_start), kText});
  return parts;
}

}  // namespace hallmark
