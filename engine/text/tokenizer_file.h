// SPDX-License-Identifier: Apache-2.0
// Reads tokenizer.json (HF tokenizers, version "1.0") into plain tables. Accepts one family: NFC,
// the Qwen3.5 split, byte-level BPE. Every other component is refused by name (kUnsupported) with
// its JSON pointer, a broken table as kMalformed, kMismatch (an added token's id against the
// vocabulary's) or kOutOfRange (an id past the number of tokens: ids are 0..n-1, each once).
// Not for stop ids or chat templates, which live in other files.
#ifndef HALLMARK_ENGINE_TEXT_TOKENIZER_FILE_H_
#define HALLMARK_ENGINE_TEXT_TOKENIZER_FILE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/result.h"
#include "engine/text/added_tokens.h"
#include "engine/text/bpe.h"

namespace hallmark {

struct TokenizerTables {
  std::vector<std::string> token_bytes;  // [vocab], what each token stands for in the text
  std::array<int32_t, 256> byte_ids{};   // the token of each byte
  std::vector<MergeRule> merges;         // by rank
  std::vector<AddedToken> added;         // in the file's order; normalized ones already in NFC
};

// `file` names the source in errors.
Result<TokenizerTables> ReadTokenizerTables(const Json& document, const std::string& file);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_TOKENIZER_FILE_H_
