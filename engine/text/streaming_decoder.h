// SPDX-License-Identifier: Apache-2.0
// StreamingDecoder: turns generated ids into text one by one. Each Push returns only whole
// characters; the beginning of one waits for the next token. All pushes and the flush together are
// Tokenizer::Decode of the same ids, wherever the stream is cut. Not for text of one token alone.
// A skipped special token is as if it had not been pushed.
#ifndef HALLMARK_ENGINE_TEXT_STREAMING_DECODER_H_
#define HALLMARK_ENGINE_TEXT_STREAMING_DECODER_H_

#include <cstdint>
#include <string>

#include "engine/base/result.h"
#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"

namespace hallmark {

class StreamingDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  explicit StreamingDecoder(const Tokenizer* tokenizer,
                            SpecialTokens specials = SpecialTokens::kSkip)
      : tokenizer_(tokenizer), specials_(specials) {}

  // The characters that `id` completes, possibly none. kOutOfRange for an id without a token; the
  // decoder is then unchanged.
  Result<std::string> Push(int32_t id);
  // Ends the text: an unfinished character becomes U+FFFD. The decoder can then be used anew.
  std::string Flush();

 private:
  const Tokenizer* tokenizer_;
  SpecialTokens specials_;
  Utf8Joiner joiner_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_STREAMING_DECODER_H_
