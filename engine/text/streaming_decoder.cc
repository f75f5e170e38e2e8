// SPDX-License-Identifier: Apache-2.0
#include "engine/text/streaming_decoder.h"

namespace hallmark {

Result<std::string> StreamingDecoder::Push(int32_t id) {
  if (!tokenizer_->Contains(id)) {
    return Fail(Code::kOutOfRange, "the id " + std::to_string(id) + " has no token, ids end at " +
                                       std::to_string(tokenizer_->vocab_size() - 1));
  }
  std::string text;
  if (specials_ == SpecialTokens::kSkip && tokenizer_->IsSpecial(id)) return text;
  joiner_.Push(tokenizer_->TokenBytes(id), &text);
  return text;
}

std::string StreamingDecoder::Flush() {
  std::string text;
  joiner_.Flush(&text);
  return text;
}

}  // namespace hallmark
