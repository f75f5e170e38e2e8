// SPDX-License-Identifier: Apache-2.0
// UTF-8 as Unicode's table 3-7 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
// For text that comes from outside, and for bytes that tokens spell. Not a general string library.
// Broken bytes become one U+FFFD for each maximal subpart of a character (Unicode 3.9, practice
// "substitution of maximal subparts"), the same choice as the web's decoders and Rust's lossy one.
#ifndef HALLMARK_ENGINE_TEXT_UTF8_H_
#define HALLMARK_ENGINE_TEXT_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hallmark {

struct Utf8Step {
  enum class Kind {
    kCharacter,  // `length` bytes spell `code_point`
    kBroken,     // `length` bytes can never be part of a character
    kPartial,    // all that is left is the beginning of a character
  };
  Kind kind = Kind::kBroken;
  int length = 0;
  char32_t code_point = 0;
};

// Reads one step at the start of `text`, which must not be empty.
Utf8Step ReadUtf8(std::string_view text);

// Offset of the first byte that is not part of a whole character; nullopt for well-formed text.
std::optional<size_t> FirstIllFormedByte(std::string_view text);

// Appends one code point, which must be a scalar value (CHECK).
void AppendUtf8(char32_t code_point, std::string* text);

// Joins bytes that arrive in pieces into characters: never hands out half of one. The result does
// not depend on where the pieces were cut.
class Utf8Joiner {
 public:
  // Appends to `text` every character that `bytes` completes, U+FFFD for broken ones.
  void Push(std::string_view bytes, std::string* text);
  // Ends the input: an unfinished character becomes U+FFFD. The joiner is then as new.
  void Flush(std::string* text);

 private:
  std::string pending_;  // the beginning of one character, at most 3 bytes
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_UTF8_H_
