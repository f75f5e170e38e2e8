// SPDX-License-Identifier: Apache-2.0
// JsonString: a JSON string kept as its characters between the quotes, escapes and all, so that
// names can be compared and hashed without a copy. Only for text that SkipJsonString accepted.
#ifndef HALLMARK_ENGINE_FORMAT_JSON_STRING_H_
#define HALLMARK_ENGINE_FORMAT_JSON_STRING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hallmark {

// What is wrong with a string, and where; `problem` is null when it is well-formed.
struct JsonStringScan {
  size_t end = 0;  // one past the closing quote, or the offending character
  const char* problem = nullptr;
};

// Checks the string that opens at text[begin], which must be a quote: UTF-8 (no surrogates, no
// overlong forms, at most U+10FFFF), no bare control characters, known escapes, paired surrogates.
JsonStringScan SkipJsonString(std::string_view text, size_t begin);

struct JsonString {
  std::string_view raw;  // between the quotes

  // The decoded UTF-8, at most `limit` bytes of it (cut at a character's start).
  std::string Decode(size_t limit = std::string::npos) const;
};

// Order of the decoded bytes: negative, zero or positive. Allocates nothing.
int CompareJsonStrings(JsonString a, JsonString b);

// Equal for strings that compare equal (FNV-1a of the decoded bytes). Allocates nothing.
uint32_t HashJsonString(JsonString text);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_JSON_STRING_H_
