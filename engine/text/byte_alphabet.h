// SPDX-License-Identifier: Apache-2.0
// The GPT-2 byte alphabet: one printable character for each byte, in which byte-level vocabularies
// are spelled. Bytes 21..7E, A1..AC and AE..FF stand for themselves (as code points); the other 68,
// in ascending order, are U+0100, U+0101, ...
#ifndef HALLMARK_ENGINE_TEXT_BYTE_ALPHABET_H_
#define HALLMARK_ENGINE_TEXT_BYTE_ALPHABET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hallmark {

// The UTF-8 spelling of one byte.
std::string SpellByte(uint8_t byte);
// The spelling of a byte string, character by character.
std::string SpellBytes(std::string_view bytes);
// The bytes that a spelling stands for; nullopt when a character is not in the alphabet.
std::optional<std::string> UnspellBytes(std::string_view spelling);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_BYTE_ALPHABET_H_
