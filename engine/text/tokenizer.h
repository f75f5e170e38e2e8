// SPDX-License-Identifier: Apache-2.0
// Tokenizer: text to token ids and back, for one tokenizer.json (tokenizer_file.h says which are
// accepted). Ids equal those of HF tokenizers. Not for stop ids, chat turns (chat.h) or padding.
// Encode refuses ill-formed UTF-8 (kMalformed, byte offset) and texts above kMaxTextBytes
// (kOutOfRange). Decoding an id without a token, such as a padding row of the head, is kOutOfRange.
// Immutable once open; may be used from several threads at once. One difference from HF: an added
// token decodes to its own text even if its letters could be read in the byte alphabet.
#ifndef HALLMARK_ENGINE_TEXT_TOKENIZER_H_
#define HALLMARK_ENGINE_TEXT_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/result.h"
#include "engine/text/added_tokens.h"
#include "engine/text/bpe.h"
#include "engine/text/pre_tokenizer.h"

namespace hallmark {

inline constexpr size_t kMaxTextBytes = size_t{64} << 20;

struct EncodeOptions {
  // False: special tokens in the text are plain text (for text that users bring). Added tokens
  // that are not special, <think> for one, still become tokens: HF's encode_special_tokens.
  bool parse_special = true;
};

enum class SpecialTokens { kSkip, kShow };

class Tokenizer {
 public:
  static Result<Tokenizer> Open(const std::string& path);
  // From a document already read; `file` names it in errors.
  static Result<Tokenizer> FromJson(const Json& document, const std::string& file);

  Result<std::vector<int32_t>> Encode(std::string_view text,
                                      const EncodeOptions& options = {}) const;
  // Bytes that are not UTF-8 become U+FFFD. StreamingDecoder gives the same text piece by piece.
  Result<std::string> Decode(std::span<const int32_t> ids,
                             SpecialTokens specials = SpecialTokens::kSkip) const;

  // Ids are 0..vocab_size()-1; the model's head may have more rows.
  int32_t vocab_size() const { return static_cast<int32_t>(token_bytes_.size()); }
  bool Contains(int32_t id) const { return id >= 0 && id < vocab_size(); }
  // What the token stands for; not always whole characters. `id` is Contains (CHECK).
  std::string_view TokenBytes(int32_t id) const;
  bool IsSpecial(int32_t id) const;
  // The added token of this content, e.g. "<|im_end|>".
  std::optional<int32_t> AddedTokenId(std::string_view content) const;
  // In the file's order.
  std::span<const AddedToken> added_tokens() const { return added_; }

 private:
  struct Parts;
  explicit Tokenizer(Parts parts);
  Status EncodeText(std::string_view text, Bpe::Scratch* scratch, std::vector<int32_t>* ids) const;

  std::vector<std::string> token_bytes_;  // [vocab]
  std::vector<bool> special_;             // [vocab]
  std::vector<AddedToken> added_;
  AddedTokenMatcher raw_matcher_;         // before NFC
  AddedTokenMatcher normalized_matcher_;  // after NFC
  PreTokenizer pre_tokenizer_;
  Bpe bpe_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_TOKENIZER_H_
