// SPDX-License-Identifier: Apache-2.0
// Added tokens: texts such as <|im_end|> that become one id wherever they stand in the input,
// before any splitting. Matching is leftmost-longest, as the reference has it. Tokens with lstrip,
// rstrip or single_word set are refused when a file is read (tokenizer_file.h) and do not occur
// here. Matching takes O(text bytes x longest token) at worst.
#ifndef HALLMARK_ENGINE_TEXT_ADDED_TOKENS_H_
#define HALLMARK_ENGINE_TEXT_ADDED_TOKENS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hallmark {

struct AddedToken {
  std::string content;  // never empty
  int32_t id = 0;
  bool special = false;     // a control token: skipped in plain output, ignored in untrusted text
  bool normalized = false;  // matched in the text after NFC instead of before
};

class AddedTokenMatcher {
 public:
  struct Part {
    std::string_view text;
    int32_t id;  // kText for what lies between tokens
  };
  static constexpr int32_t kText = -1;

  // Contents are non-empty and differ from each other (CHECK).
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  // Cuts `text` into added tokens and the text between them; no part is empty. With
  // `parse_special` false, special tokens are text: a match of one still hides a shorter token
  // inside it, as in the reference.
  std::vector<Part> Split(std::string_view text, bool parse_special) const;

 private:
  // The longest token that `text` starts with, or null.
  const AddedToken* LongestAt(std::string_view text) const;

  std::vector<AddedToken> tokens_;  // ascending content, bytewise
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_ADDED_TOKENS_H_
