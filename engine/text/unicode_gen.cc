// SPDX-License-Identifier: Apache-2.0
#include "engine/text/unicode_gen.h"

#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "engine/text/utf8.h"

namespace hallmark {
namespace {

rc::Gen<uint32_t> CodePoints(uint32_t first, uint32_t last) {
  return rc::gen::inRange<uint32_t>(first, last + 1);
}

rc::Gen<uint32_t> AnyCodePoint() {
  return rc::gen::oneOf(
      CodePoints(0, 0x7F), CodePoints('a', 'e'), CodePoints('0', '9'), CodePoints(0x80, 0x24F),
      rc::gen::element<uint32_t>(' ', '\n', '\r', '\t', 0x85, 0xA0, 0x180E, 0x2028, 0x3000),
      rc::gen::element<uint32_t>('\'', 's', 'T', 'l', 'L', 'v', 'e', 0x17F),
      CodePoints(0x300, 0x36F),    // combining marks
      CodePoints(0x591, 0x5C7),    // Hebrew points: many combining classes
      CodePoints(0x1100, 0x11FF),  // conjoining jamo
      CodePoints(0xAC00, 0xAC40),  // Hangul syllables
      CodePoints(0x1AB0, 0x1ACE),  // marks of Unicode 7 to 14
      CodePoints(0x1E00, 0x1FFF),  // letters that decompose
      CodePoints(0x1F300, 0x1FAFF), CodePoints(0, 0xD7FF), CodePoints(0xE000, 0x10FFFF));
}

}  // namespace

std::string DrawUnicodeText() {
  std::string text;
  for (const uint32_t value : *rc::gen::container<std::vector<uint32_t>>(AnyCodePoint())) {
    AppendUtf8(value, &text);
  }
  return text;
}

}  // namespace hallmark
