// SPDX-License-Identifier: Apache-2.0
#include "engine/format/json_string.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace hallmark {
namespace {

std::optional<uint32_t> Hex4(std::string_view text, size_t at) {
  if (at + 4 > text.size()) return std::nullopt;
  uint32_t value = 0;
  for (size_t i = at; i < at + 4; ++i) {
    const char c = text[i];
    uint32_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint32_t>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<uint32_t>(c - 'A') + 10;
    } else {
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return value;
}

bool IsHighSurrogate(uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowSurrogate(uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

// Bytes of the UTF-8 sequence that starts at text[at], or 0 when it is not UTF-8 (Unicode 15,
// table 3-7: the second byte's range depends on the first).
size_t Utf8Length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : uint8_t{0};
  };
  const auto tail = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint8_t first = byte(0);
  const uint8_t second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const uint8_t low = first == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = first == 0xED ? 0x9F : 0xBF;
    return second >= low && second <= high && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const uint8_t low = first == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xF4 ? 0x8F : 0xBF;
    return second >= low && second <= high && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

// One decoded character as UTF-8 bytes.
struct Character {
  char bytes[4] = {};
  size_t size = 0;
};

Character EncodeUtf8(uint32_t point) {
  Character out;
  const auto put = [&out](uint32_t value) { out.bytes[out.size++] = static_cast<char>(value); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | (point >> 6));
    put(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    put(0xE0 | (point >> 12));
    put(0x80 | ((point >> 6) & 0x3F));
    put(0x80 | (point & 0x3F));
  } else {
    put(0xF0 | (point >> 18));
    put(0x80 | ((point >> 12) & 0x3F));
    put(0x80 | ((point >> 6) & 0x3F));
    put(0x80 | (point & 0x3F));
  }
  return out;
}

// Takes the character at raw[*at] and moves past it. The text is known to be well-formed.
Character NextCharacter(std::string_view raw, size_t* at) {
  Character out;
  if (raw[*at] != '\\') {
    out.size = std::max<size_t>(1, Utf8Length(raw, *at));
    std::memcpy(out.bytes, raw.data() + *at, out.size);
    *at += out.size;
    return out;
  }
  const char escape = raw[*at + 1];
  *at += 2;
  switch (escape) {
    case 'b':
      return EncodeUtf8('\b');
    case 'f':
      return EncodeUtf8('\f');
    case 'n':
      return EncodeUtf8('\n');
    case 'r':
      return EncodeUtf8('\r');
    case 't':
      return EncodeUtf8('\t');
    case 'u': {
      uint32_t unit = Hex4(raw, *at).value_or(0);
      *at += 4;
      if (IsHighSurrogate(unit)) {
        const uint32_t low = Hex4(raw, *at + 2).value_or(0xDC00);
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        *at += 6;
      }
      return EncodeUtf8(unit);
    }
    default:
      return EncodeUtf8(static_cast<uint8_t>(escape));
  }
}

// Checks the escape at text[at] == '\\'; moves *at past it.
const char* SkipEscape(std::string_view text, size_t* at) {
  if (*at + 1 >= text.size()) return "a string that does not end";
  const char escape = text[*at + 1];
  if (std::string_view("\"\\/bfnrt").find(escape) != std::string_view::npos) {
    *at += 2;
    return nullptr;
  }
  if (escape != 'u') return "an unknown escape in a string";
  const std::optional<uint32_t> unit = Hex4(text, *at + 2);
  if (!unit) return "a \\u escape without four hex digits";
  if (IsLowSurrogate(*unit)) return "a low surrogate without its high one";
  if (!IsHighSurrogate(*unit)) {
    *at += 6;
    return nullptr;
  }
  const bool paired = text.substr(std::min(*at + 6, text.size()), 2) == "\\u";
  const std::optional<uint32_t> low = paired ? Hex4(text, *at + 8) : std::nullopt;
  if (!low || !IsLowSurrogate(*low)) return "a high surrogate without its low one";
  *at += 12;
  return nullptr;
}

}  // namespace

JsonStringScan SkipJsonString(std::string_view text, size_t begin) {
  size_t at = begin + 1;
  while (at < text.size()) {
    const auto c = static_cast<uint8_t>(text[at]);
    if (c == '"') return {at + 1, nullptr};
    if (c < 0x20) return {at, "a bare control character in a string"};
    if (c == '\\') {
      const char* problem = SkipEscape(text, &at);
      if (problem != nullptr) return {at, problem};
    } else if (c < 0x80) {
      ++at;
    } else {
      const size_t length = Utf8Length(text, at);
      if (length == 0) return {at, "bytes that are not UTF-8"};
      at += length;
    }
  }
  return {at, "a string that does not end"};
}

std::string JsonString::Decode(size_t limit) const {
  std::string text;
  for (size_t at = 0; at < raw.size();) {
    const Character next = NextCharacter(raw, &at);
    if (text.size() + next.size > limit) break;
    text.append(next.bytes, next.size);
  }
  return text;
}

uint32_t HashJsonString(JsonString text) {
  uint32_t hash = 2166136261u;
  for (size_t at = 0; at < text.raw.size();) {
    const Character next = NextCharacter(text.raw, &at);
    for (size_t i = 0; i < next.size; ++i) {
      hash = (hash ^ static_cast<uint8_t>(next.bytes[i])) * 16777619u;
    }
  }
  return hash;
}

int CompareJsonStrings(JsonString a, JsonString b) {
  const bool plain =
      a.raw.find('\\') == std::string_view::npos && b.raw.find('\\') == std::string_view::npos;
  if (plain) return a.raw.compare(b.raw);
  size_t i = 0;
  size_t j = 0;
  while (i < a.raw.size() && j < b.raw.size()) {
    // Whole characters may be compared: UTF-8 keeps the order of code points.
    const Character x = NextCharacter(a.raw, &i);
    const Character y = NextCharacter(b.raw, &j);
    const int order = std::string_view(x.bytes, x.size).compare(std::string_view(y.bytes, y.size));
    if (order != 0) return order;
  }
  return static_cast<int>(i < a.raw.size()) - static_cast<int>(j < b.raw.size());
}

}  // namespace hallmark
