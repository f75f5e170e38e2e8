// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutators/json_mutator.h"

#include <array>
#include <charconv>
#include <string_view>
#include <vector>

namespace hallmark::fuzz {
namespace {

struct Piece {
  size_t begin = 0;
  size_t end = 0;
  char kind = 0;  // of a value: its first character
};

// Values, keys among them, and items: the elements of lists and the members of objects.
struct Outline {
  std::vector<Piece> values;
  std::vector<Piece> items;
};

bool IsWord(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.';
}

size_t EndOfString(std::string_view text, size_t begin) {
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return text.size();
}

// One pass; what is open at the end ends there.
Outline OutlineOf(std::string_view text) {
  Outline outline;
  struct Open {
    size_t value;  // index of its piece
    size_t item;   // where the current item begins
  };
  std::vector<Open> open;
  const auto end_item = [&](size_t end) {
    if (!open.empty() && end > open.back().item) outline.items.push_back({open.back().item, end});
  };
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    size_t end = i + 1;
    if (c == '"') {
      end = EndOfString(text, i);
      outline.values.push_back({i, end, c});
    } else if (c == '{' || c == '[') {
      open.push_back({outline.values.size(), end});
      outline.values.push_back({i, text.size(), c});
    } else if ((c == '}' || c == ']') && !open.empty()) {
      end_item(i);
      outline.values[open.back().value].end = end;
      open.pop_back();
    } else if (c == ',' && !open.empty()) {
      end_item(i);
      open.back().item = end;
    } else if (IsWord(c)) {
      while (end < text.size() && IsWord(text[end])) ++end;
      outline.values.push_back({i, end, c});
    }
    i = end;
  }
  return outline;
}

constexpr std::array<std::string_view, 38> kValues = {"0",
                                                      "1",
                                                      "-1",
                                                      "2",
                                                      "3",
                                                      "8",
                                                      "16",
                                                      "127",
                                                      "128",
                                                      "129",
                                                      "255",
                                                      "256",
                                                      "4096",
                                                      "65536",
                                                      "2147483647",
                                                      "2147483648",
                                                      "-2147483648",
                                                      "4294967295",
                                                      "4294967296",
                                                      "4611686018427387904",
                                                      "9223372036854775807",
                                                      "9223372036854775808",
                                                      "-9223372036854775808",
                                                      "18446744073709551615",
                                                      "18446744073709551616",
                                                      "0.5",
                                                      "1.5",
                                                      "1e308",
                                                      "1e-400",
                                                      "-0",
                                                      "true",
                                                      "false",
                                                      "null",
                                                      "\"\"",
                                                      "[]",
                                                      "{}",
                                                      "[0]",
                                                      "\"\\u0000\""};

std::string Replaced(const std::string& text, const Piece& piece, std::string_view with) {
  std::string made = text.substr(0, piece.begin);
  made += with;
  made.append(text, piece.end);
  return made;
}

std::string_view TextOf(const std::string& text, const Piece& piece) {
  return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
}

std::string MovedNumber(std::string_view text, Mutation& mutation) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  const auto bits = static_cast<uint64_t>(value);
  switch (mutation.Below(8)) {
    case 0:
      return std::to_string(static_cast<int64_t>(bits + 1));
    case 1:
      return std::to_string(static_cast<int64_t>(bits - 1));
    case 2:
      return std::to_string(static_cast<int64_t>(bits * 2));
    case 3:
      return std::to_string(value / 2);
    case 4:
      return std::to_string(static_cast<int64_t>(bits << (mutation.Below(8) * 8)));
    case 5:
      return std::to_string(static_cast<int64_t>(0 - bits));
    case 6:
      return std::string(text) + (mutation.Below(2) == 0 ? "e0" : ".0");
    default:
      return std::to_string(static_cast<int64_t>(bits ^ uint64_t{1} << mutation.Below(64)));
  }
}

// The item and one comma beside it, so that the rest stays a list.
Piece WithComma(const std::string& text, Piece item) {
  if (item.end < text.size() && text[item.end] == ',') {
    ++item.end;
  } else if (item.begin > 0 && text[item.begin - 1] == ',') {
    --item.begin;
  }
  return item;
}

std::string Wrapped(const std::string& text, const Piece& value, Mutation& mutation) {
  const size_t depth = mutation.Below(8) == 0 ? 1 + mutation.Below(200) : 1;
  const bool list = mutation.Below(2) == 0;
  std::string made;
  for (size_t i = 0; i < depth; ++i) made += list ? "[" : "{\"a\":";
  made += TextOf(text, value);
  for (size_t i = 0; i < depth; ++i) made += list ? "]" : "}";
  return Replaced(text, value, made);
}

std::string Swapped(const std::string& text, Piece a, Piece b) {
  if (a.begin > b.begin) std::swap(a, b);
  if (a.end > b.begin) return text;  // one inside the other
  std::string made = text.substr(0, a.begin);
  made += TextOf(text, b);
  made.append(text, a.end, b.begin - a.end);
  made += TextOf(text, a);
  made.append(text, b.end);
  return made;
}

std::string MutateOnce(const std::string& text, Mutation& mutation) {
  const Outline outline = OutlineOf(text);
  if (outline.values.empty()) return MutateBytes(text, mutation);
  const auto value = [&] { return outline.values[mutation.Below(outline.values.size())]; };
  const Piece at = value();
  switch (mutation.Below(outline.items.empty() ? 6 : 10)) {
    case 0:
      return Replaced(text, at, kValues[mutation.Below(kValues.size())]);
    case 1:
      return Replaced(text, at, std::string(TextOf(text, value())));
    case 2:
      return Wrapped(text, at, mutation);
    case 3:
    case 4: {
      if (at.kind == '"' && at.end - at.begin >= 2) {
        const Piece inner{at.begin + 1, at.end - 1};
        return Replaced(text, inner, MutateBytes(std::string(TextOf(text, inner)), mutation));
      }
      const bool number = at.kind == '-' || (at.kind >= '0' && at.kind <= '9');
      if (number) return Replaced(text, at, MovedNumber(TextOf(text, at), mutation));
      return Swapped(text, at, value());
    }
    case 5:
      return Swapped(text, at, value());
    default:
      break;
  }
  const auto item = [&] { return outline.items[mutation.Below(outline.items.size())]; };
  const Piece chosen = item();
  switch (mutation.Below(4)) {
    case 0:
      return Replaced(text, WithComma(text, chosen), "");
    case 1:
      return Replaced(text, {chosen.end, chosen.end}, "," + std::string(TextOf(text, chosen)));
    case 2:
      return Replaced(text, {chosen.end, chosen.end}, "," + std::string(TextOf(text, item())));
    default:
      return Swapped(text, chosen, item());
  }
}

}  // namespace

std::string MutateBytes(std::string text, Mutation& mutation) {
  const size_t size = text.size();
  const size_t room = size + 64;
  text.resize(room);
  text.resize(mutation.bytes(reinterpret_cast<uint8_t*>(text.data()), size, room));
  return text;
}

std::string MutateJson(std::string text, Mutation& mutation) {
  for (size_t steps = 1 + mutation.Below(3); steps > 0; --steps) {
    text = MutateOnce(text, mutation);
    if (text.size() > mutation.max_size) break;
  }
  return text;
}

}  // namespace hallmark::fuzz
