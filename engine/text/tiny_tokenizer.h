// SPDX-License-Identifier: Apache-2.0
// For tests: a small tokenizer.json built in memory. Tokens 0..255
// are the bytes, then th, the, Ġthe, aa, aaaa, then added tokens.
#ifndef HALLMARK_ENGINE_TEXT_TINY_TOKENIZER_H_
#define HALLMARK_ENGINE_TEXT_TINY_TOKENIZER_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/text/tokenizer.h"

namespace hallmark {

inline constexpr int32_t kTinyTh = 256;
inline constexpr int32_t kTinyThe = 257;
inline constexpr int32_t kTinySpaceThe = 258;
inline constexpr int32_t kTinyAa = 259;
inline constexpr int32_t kTinyAaaa = 260;
inline constexpr int32_t kTinyEnd = 261;         // <|end|>, special
inline constexpr int32_t kTinyThink = 262;       // <think>, not special
inline constexpr int32_t kTinyNormalized = 263;  // "Åx" composed, matched after NFC
inline constexpr int32_t kTinyVocab = 264;

Json TinyTokenizerJson();
Tokenizer TinyTokenizer();

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_TINY_TOKENIZER_H_
