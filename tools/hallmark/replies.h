// SPDX-License-Identifier: Apache-2.0
// Replies on their way to a reader: ids to text, text to stdout in the order of the prompts,
// whichever ends first. Not JSON and not speeds: those are made when all is done.
#ifndef HALLMARK_TOOLS_HALLMARK_REPLIES_H_
#define HALLMARK_TOOLS_HALLMARK_REPLIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/text/streaming_decoder.h"

namespace hallmark {

// The text of one reply, piece by piece: decoded where there is a tokenizer, else ids separated by
// spaces.
class ReplyText {
 public:
  explicit ReplyText(const Tokenizer* tokenizer) {
    if (tokenizer != nullptr) decoder_.emplace(tokenizer);
  }

  // What `id` adds.
  Result<std::string> Push(int32_t id);
  // What was held back for a character that never came to its end.
  std::string Finish();

  bool decoded() const { return decoder_.has_value(); }
  const std::string& all() const { return all_; }

 private:
  std::optional<StreamingDecoder> decoder_;
  std::string all_;
};

// Prints `count` replies to stdout, the first unfinished one as it comes; with `headers`, each
// under a line of its own.
class ReplyPrinter {
 public:
  ReplyPrinter(size_t count, bool headers) : headers_(headers), waiting_(count), finished_(count) {}

  // False when the reader is gone; nothing is written from then on.
  bool Print(size_t index, const std::string& piece);
  bool Finish(size_t index);
  bool broken() const { return broken_; }

 private:
  bool Write(const std::string& text);
  // Everything that waits for nothing but its turn.
  bool Advance();

  bool headers_;
  std::vector<std::string> waiting_;
  std::vector<bool> finished_;
  size_t current_ = 0;   // the reply whose turn it is
  bool opened_ = false;  // its header is out
  bool broken_ = false;
};

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_HALLMARK_REPLIES_H_
