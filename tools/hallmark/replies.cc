// SPDX-License-Identifier: Apache-2.0
#include "tools/hallmark/replies.h"

#include <utility>

#include "tools/hallmark/report.h"

namespace hallmark {

Result<std::string> ReplyText::Push(int32_t id) {
  std::string piece =
      decoder_ ? TRY(decoder_->Push(id)) : (all_.empty() ? "" : " ") + std::to_string(id);
  all_ += piece;
  return piece;
}

std::string ReplyText::Finish() {
  std::string piece = decoder_ ? decoder_->Flush() : "";
  all_ += piece;
  return piece;
}

bool ReplyPrinter::Print(size_t index, const std::string& piece) {
  waiting_[index] += piece;
  return Advance();
}

bool ReplyPrinter::Finish(size_t index) {
  finished_[index] = true;
  return Advance();
}

bool ReplyPrinter::Advance() {
  while (!broken_ && current_ < waiting_.size()) {
    std::string text;
    if (!opened_ && headers_) {
      text = (current_ == 0 ? "" : "\n") + std::string("=== reply ") +
             std::to_string(current_ + 1) + " of " + std::to_string(waiting_.size()) + " ===\n";
    }
    opened_ = true;
    text += std::exchange(waiting_[current_], {});
    if (finished_[current_]) text += '\n';
    if (!text.empty() && !Write(text)) return false;
    if (!finished_[current_]) break;
    ++current_;
    opened_ = false;
  }
  return !broken_;
}

bool ReplyPrinter::Write(const std::string& text) {
  broken_ = PrintText(text) != kExitOk;
  return !broken_;
}

}  // namespace hallmark
