// SPDX-License-Identifier: Apache-2.0
// Where the installed Unicode libraries and the reference tokenizer know different versions of
// Unicode, the code points that differ. The reference is HF tokenizers 0.23: its regex engine
// (Oniguruma) has Unicode 16 categories, its NFC has Unicode 9 data. Debian 12 and Ubuntu 24.04
// have PCRE2 10.42 (Unicode 14); utf8proc is 2.8 (Unicode 15) on one and 2.9 (15.1) on the other.
// Token ids follow the reference, so these lists bring both libraries to it.
// Source: all code points put through the reference and through PCRE2 10.42, and the character
// data of Unicode 18 for the last list. Ranges are inclusive and ascending.
#ifndef HALLMARK_ENGINE_TEXT_UNICODE_RANGES_H_
#define HALLMARK_ENGINE_TEXT_UNICODE_RANGES_H_

#include <span>

namespace hallmark {

struct CodePointRange {
  char32_t first = 0;
  char32_t last = 0;
};

// Letters, marks and numbers of Unicode 15 to 16, unassigned in 14.
std::span<const CodePointRange> LateLetters();
std::span<const CodePointRange> LateMarks();
std::span<const CodePointRange> LateNumbers();

// Code points younger than Unicode 9 that a newer NFC would move or compose, and the reference
// leaves where they are.
std::span<const CodePointRange> InertInNfc();

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_UNICODE_RANGES_H_
