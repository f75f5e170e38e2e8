// SPDX-License-Identifier: Apache-2.0
#include "engine/text/byte_alphabet.h"

#include <array>

#include "engine/text/utf8.h"

namespace hallmark {
namespace {

constexpr char32_t kEnd = 0x100 + 68;  // one past the last character of the alphabet

constexpr bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char16_t, 256> MakeCharacters() {
  std::array<char16_t, 256> characters{};
  char16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    characters[byte] = StandsForItself(byte) ? static_cast<char16_t>(byte) : next++;
  }
  return characters;
}
constexpr std::array<char16_t, 256> kCharacters = MakeCharacters();

// -1 for characters outside the alphabet.
constexpr std::array<int16_t, kEnd> MakeBytes() {
  std::array<int16_t, kEnd> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  for (int byte = 0; byte < 256; ++byte) bytes[kCharacters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}
constexpr std::array<int16_t, kEnd> kBytes = MakeBytes();

}  // namespace

std::string SpellByte(uint8_t byte) {
  std::string text;
  AppendUtf8(kCharacters[byte], &text);
  return text;
}

std::string SpellBytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) AppendUtf8(kCharacters[static_cast<uint8_t>(byte)], &text);
  return text;
}

std::optional<std::string> UnspellBytes(std::string_view spelling) {
  std::string bytes;
  while (!spelling.empty()) {
    const Utf8Step step = ReadUtf8(spelling);
    if (step.kind != Utf8Step::Kind::kCharacter || step.code_point >= kEnd) return std::nullopt;
    const int16_t byte = kBytes[step.code_point];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    spelling.remove_prefix(step.length);
  }
  return bytes;
}

}  // namespace hallmark
