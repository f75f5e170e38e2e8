// SPDX-License-Identifier: Apache-2.0
#include "engine/text/utf8.h"

#include "engine/base/check.h"

namespace hallmark {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What a lead byte asks for. The second byte's range is what excludes overlong forms, surrogates
// and values past U+10FFFF; later bytes are always 80..BF.
struct Lead {
  int length;  // 0: not a lead byte
  uint8_t second_low;
  uint8_t second_high;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step ReadUtf8(std::string_view text) {
  CHECK(!text.empty());
  const uint8_t first = static_cast<uint8_t>(text[0]);
  const Lead lead = LeadOf(first);
  if (lead.length == 1) return {Utf8Step::Kind::kCharacter, 1, first};
  if (lead.length == 0) return {Utf8Step::Kind::kBroken, 1, 0};
  char32_t code_point = first & (0x7F >> lead.length);
  for (int i = 1; i < lead.length; ++i) {
    if (static_cast<size_t>(i) == text.size()) return {Utf8Step::Kind::kPartial, i, 0};
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    const uint8_t low = i == 1 ? lead.second_low : 0x80;
    const uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {Utf8Step::Kind::kBroken, i, 0};
    code_point = (code_point << 6) | (byte & 0x3F);
  }
  return {Utf8Step::Kind::kCharacter, lead.length, code_point};
}

std::optional<size_t> FirstIllFormedByte(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    // ASCII apart: most text is.
    if (static_cast<uint8_t>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Step step = ReadUtf8(text.substr(at));
    if (step.kind != Utf8Step::Kind::kCharacter) return at;
    at += step.length;
  }
  return std::nullopt;
}

void AppendUtf8(char32_t code_point, std::string* text) {
  CHECK(code_point < 0x110000 && (code_point < 0xD800 || code_point > 0xDFFF));
  if (code_point < 0x80) {
    text->push_back(static_cast<char>(code_point));
    return;
  }
  const int tail = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  const uint32_t mark = (0xF00u >> (tail + 1)) & 0xFF;  // C0, E0 or F0 with the length's ones
  text->push_back(static_cast<char>(mark | (code_point >> (6 * tail))));
  for (int i = tail - 1; i >= 0; --i) {
    text->push_back(static_cast<char>(0x80 | ((code_point >> (6 * i)) & 0x3F)));
  }
}

// Linear in all bytes pushed: what is kept from one call is at most 3 bytes.
void Utf8Joiner::Push(std::string_view bytes, std::string* text) {
  std::string joined;
  if (!pending_.empty()) {
    joined = pending_;
    joined += bytes;
    bytes = joined;
    pending_.clear();
  }
  size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Step step = ReadUtf8(bytes.substr(at));
    if (step.kind == Utf8Step::Kind::kPartial) break;
    *text += step.kind == Utf8Step::Kind::kCharacter ? bytes.substr(at, step.length) : kReplacement;
    at += step.length;
  }
  pending_ = bytes.substr(at);
}

void Utf8Joiner::Flush(std::string* text) {
  if (!pending_.empty()) *text += kReplacement;
  pending_.clear();
}

}  // namespace hallmark
