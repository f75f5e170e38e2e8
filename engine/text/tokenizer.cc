// SPDX-License-Identifier: Apache-2.0
#include "engine/text/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/check.h"
#include "engine/text/normalizer.h"
#include "engine/text/streaming_decoder.h"
#include "engine/text/tokenizer_file.h"
#include "engine/text/utf8.h"

namespace hallmark {
namespace {

// Several times what a vocabulary of 248,000 tokens takes.
constexpr size_t kMaxFileBytes = size_t{128} << 20;

std::vector<AddedToken> MatchedWhere(const std::vector<AddedToken>& tokens, bool normalized) {
  std::vector<AddedToken> chosen;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(chosen),
               [normalized](const AddedToken& token) { return token.normalized == normalized; });
  return chosen;
}

}  // namespace

struct Tokenizer::Parts {
  TokenizerTables tables;
  PreTokenizer pre_tokenizer;
};

Tokenizer::Tokenizer(Parts parts)
    : token_bytes_(std::move(parts.tables.token_bytes)),
      special_(token_bytes_.size(), false),
      added_(std::move(parts.tables.added)),
      raw_matcher_(MatchedWhere(added_, false)),
      normalized_matcher_(MatchedWhere(added_, true)),
      pre_tokenizer_(std::move(parts.pre_tokenizer)),
      bpe_(parts.tables.byte_ids, std::move(parts.tables.merges), vocab_size()) {
  for (const AddedToken& token : added_) special_[token.id] = token.special;
}

Result<Tokenizer> Tokenizer::Open(const std::string& path) {
  const Json document = TRY(ReadJsonFile(path, kMaxFileBytes));
  return FromJson(document, path);
}

Result<Tokenizer> Tokenizer::FromJson(const Json& document, const std::string& file) {
  TokenizerTables tables = TRY(ReadTokenizerTables(document, file));
  PreTokenizer pre_tokenizer = TRY(PreTokenizer::Make());
  return Tokenizer(Parts{std::move(tables), std::move(pre_tokenizer)});
}

Result<std::vector<int32_t>> Tokenizer::Encode(std::string_view text,
                                               const EncodeOptions& options) const {
  if (text.size() > kMaxTextBytes) {
    return Fail(Code::kOutOfRange, "the text has " + std::to_string(text.size()) +
                                       " bytes, at most " + std::to_string(kMaxTextBytes) +
                                       " are encoded");
  }
  // Checked as a whole first, so that the offset in the error counts from the text's start.
  if (const auto bad = FirstIllFormedByte(text)) {
    return Fail(Code::kMalformed, "the text is not valid UTF-8", {.byte = *bad});
  }
  std::vector<int32_t> ids;
  Bpe::Scratch scratch;
  for (const auto& part : raw_matcher_.Split(text, options.parse_special)) {
    if (part.id != AddedTokenMatcher::kText) {
      ids.push_back(part.id);
      continue;
    }
    // NFC and the split never reach across an added token: each stretch of text stands alone.
    const std::string normal = TRY(NormalizeNfc(part.text));
    for (const auto& inner : normalized_matcher_.Split(normal, options.parse_special)) {
      if (inner.id != AddedTokenMatcher::kText) {
        ids.push_back(inner.id);
      } else {
        TRY(EncodeText(inner.text, &scratch, &ids));
      }
    }
  }
  return ids;
}

Status Tokenizer::EncodeText(std::string_view text, Bpe::Scratch* scratch,
                             std::vector<int32_t>* ids) const {
  std::vector<std::string_view> pieces;
  TRY(pre_tokenizer_.Split(text, &pieces));
  for (const std::string_view piece : pieces) bpe_.Encode(piece, scratch, ids);
  return {};
}

Result<std::string> Tokenizer::Decode(std::span<const int32_t> ids, SpecialTokens specials) const {
  StreamingDecoder decoder(this, specials);
  std::string text;
  for (const int32_t id : ids) text += TRY(decoder.Push(id));
  text += decoder.Flush();
  return text;
}

std::string_view Tokenizer::TokenBytes(int32_t id) const {
  CHECK(Contains(id));
  return token_bytes_[id];
}

bool Tokenizer::IsSpecial(int32_t id) const { return Contains(id) && special_[id]; }

// A linear search: there are a few dozen, and they are looked up when a session opens.
std::optional<int32_t> Tokenizer::AddedTokenId(std::string_view content) const {
  for (const AddedToken& token : added_) {
    if (token.content == content) return token.id;
  }
  return std::nullopt;
}

}  // namespace hallmark
