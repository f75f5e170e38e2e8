// SPDX-License-Identifier: Apache-2.0
// A minimal ChatML renderer for Qwen3.5 conversations: turns <|im_start|>role\n...<|im_end|>\n, the
// prompt for a reply, and the rules for reasoning in past replies. Not a template engine: tools,
// images and the checkpoint's own chat_template are outside, and a role other than system, user or
// assistant is kUnsupported. A list of messages that Qwen's template refuses is kMalformed here: no
// message, no user query, or a system message that is not the first. Pointers are /messages/N/...
//
// Text is trimmed of white space (Unicode's, and U+001C..1F) at both ends and otherwise kept as it
// is: a message that holds <|im_end|> ends its turn when the result is encoded with specials.
#ifndef HALLMARK_ENGINE_TEXT_CHAT_H_
#define HALLMARK_ENGINE_TEXT_CHAT_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace hallmark {

struct ChatMessage {
  std::string role;
  std::string content;
  // What an assistant thought. When absent, a <think>...</think> block at the start of the content
  // is taken for it.
  std::optional<std::string> reasoning;
};

struct ChatOptions {
  // Ends with the beginning of an assistant turn.
  bool add_generation_prompt = true;
  // The reply starts inside <think>, or after an empty block. Checkpoints of 4B and up are meant to
  // think by default, 0.8B and 2B not to.
  bool thinking = true;
  // Keeps reasoning in all past replies, not only in those after the last user query.
  bool preserve_thinking = false;
};

Result<std::string> RenderChat(std::span<const ChatMessage> messages,
                               const ChatOptions& options = {});

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_CHAT_H_
