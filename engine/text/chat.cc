// SPDX-License-Identifier: Apache-2.0
#include "engine/text/chat.h"

#include <vector>

#include "engine/text/utf8.h"

namespace hallmark {
namespace {

constexpr std::string_view kTurnStart = "<|im_start|>";
constexpr std::string_view kTurnEnd = "<|im_end|>\n";
constexpr std::string_view kThinkStart = "<think>";
constexpr std::string_view kThinkEnd = "</think>";
constexpr std::string_view kToolResponseStart = "<tool_response>";
constexpr std::string_view kToolResponseEnd = "</tool_response>";

// What Python's str.strip takes for space, since templates trim with it.
bool IsSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

// `text` is well-formed.
std::string_view Trim(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = ReadUtf8(text);
    if (!IsSpace(step.code_point)) break;
    text.remove_prefix(step.length);
  }
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<uint8_t>(text[last]) & 0xC0) == 0x80) --last;
    if (!IsSpace(ReadUtf8(text.substr(last)).code_point)) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

struct AssistantText {
  std::string_view reasoning;
  std::string_view content;
};

// Reasoning ends at the first </think> and starts after the last <think> before it; the reply is
// what follows the last </think>.
AssistantText SplitReasoning(const ChatMessage& message) {
  AssistantText text{{}, Trim(message.content)};
  if (message.reasoning.has_value()) {
    text.reasoning = Trim(*message.reasoning);
    return text;
  }
  const size_t first_end = text.content.find(kThinkEnd);
  if (first_end == std::string_view::npos) return text;
  text.reasoning = text.content.substr(0, first_end);
  const size_t start = text.reasoning.rfind(kThinkStart);
  if (start != std::string_view::npos) text.reasoning.remove_prefix(start + kThinkStart.size());
  text.reasoning = Trim(text.reasoning);
  text.content.remove_prefix(text.content.rfind(kThinkEnd) + kThinkEnd.size());
  while (text.content.starts_with('\n')) text.content.remove_prefix(1);
  return text;
}

// A user turn that only carries a tool's result is not a query.
bool IsUserQuery(const ChatMessage& message) {
  if (message.role != "user") return false;
  const std::string_view content = Trim(message.content);
  return !(content.starts_with(kToolResponseStart) && content.ends_with(kToolResponseEnd));
}

Status CheckMessages(std::span<const ChatMessage> messages) {
  const auto where = [](size_t index, std::string_view member) {
    return Locator{.pointer = "/messages/" + std::to_string(index) + "/" + std::string(member)};
  };
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.role == "system" && i > 0) {
      return Fail(Code::kMalformed, "a system message stands after others, it must be the first",
                  where(i, "role"));
    }
    if (message.role != "system" && message.role != "user" && message.role != "assistant") {
      return Fail(Code::kUnsupported,
                  "found the role \"" + message.role + "\", expected system, user or assistant",
                  where(i, "role"));
    }
    if (FirstIllFormedByte(message.content).has_value()) {
      return Fail(Code::kMalformed, "the message is not valid UTF-8", where(i, "content"));
    }
    if (message.reasoning.has_value() && FirstIllFormedByte(*message.reasoning).has_value()) {
      return Fail(Code::kMalformed, "the reasoning is not valid UTF-8", where(i, "reasoning"));
    }
  }
  return {};
}

}  // namespace

Result<std::string> RenderChat(std::span<const ChatMessage> messages, const ChatOptions& options) {
  // Well-formed from here on; Trim relies on it.
  TRY(CheckMessages(messages));
  std::optional<size_t> last_query;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (IsUserQuery(messages[i])) last_query = i;
  }
  if (!last_query.has_value()) {
    return Fail(Code::kMalformed, "the conversation holds no user query", {.pointer = "/messages"});
  }
  std::string text;
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    text += kTurnStart;
    text += message.role;
    text += '\n';
    if (message.role == "assistant") {
      const AssistantText parts = SplitReasoning(message);
      if (i > *last_query || options.preserve_thinking) {
        text += "<think>\n";
        text += parts.reasoning;
        text += "\n</think>\n\n";
      }
      text += parts.content;
    } else {
      text += Trim(message.content);
    }
    text += kTurnEnd;
  }
  if (options.add_generation_prompt) {
    text += kTurnStart;
    text += options.thinking ? "assistant\n<think>\n" : "assistant\n<think>\n\n</think>\n\n";
  }
  return text;
}

}  // namespace hallmark
