// SPDX-License-Identifier: Apache-2.0
#include "engine/text/chat.h"

#include <gtest/gtest.h>

#include <vector>

namespace hallmark {
namespace {

using Messages = std::vector<ChatMessage>;

std::string Render(const Messages& messages, const ChatOptions& options = {}) {
  const auto text = RenderChat(messages, options);
  EXPECT_TRUE(text.has_value());
  return text.value_or("");
}

void ExpectRefused(const Messages& messages, Code code, const std::string& pointer) {
  const auto text = RenderChat(messages);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, code) << text.error().ToString();
  EXPECT_EQ(text.error().where, (Locator{.pointer = pointer}));
}

TEST(Chat, RendersTurnsAndTheStartOfAReply) {
  EXPECT_EQ(Render({{"system", "Be brief."}, {"user", "Hi"}}),
            "<|im_start|>system\nBe brief.<|im_end|>\n"
            "<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n<think>\n");
}

TEST(Chat, ClosesTheThinkBlockWhenThinkingIsOff) {
  EXPECT_EQ(Render({{"user", "Hi"}}, {.thinking = false}),
            "<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n<think>\n\n</think>\n\n");
}

TEST(Chat, EndsWithTheLastTurnWithoutAGenerationPrompt) {
  EXPECT_EQ(Render({{"user", "Hi"}}, {.add_generation_prompt = false}),
            "<|im_start|>user\nHi<|im_end|>\n");
}

TEST(Chat, TrimsUnicodeSpaceAtBothEndsOnly) {
  EXPECT_EQ(Render({{"user", "\n \u00A0\u3000a \n b\u2003\t"}}, {.add_generation_prompt = false}),
            "<|im_start|>user\na \n b<|im_end|>\n");
  EXPECT_EQ(Render({{"user", " \n "}}, {.add_generation_prompt = false}),
            "<|im_start|>user\n<|im_end|>\n");
}

TEST(Chat, DropsReasoningBeforeTheLastUserQuery) {
  const Messages messages = {{"user", "q1"}, {"assistant", "a1", "r1"}, {"user", "q2"}};
  EXPECT_EQ(Render(messages, {.add_generation_prompt = false}),
            "<|im_start|>user\nq1<|im_end|>\n<|im_start|>assistant\na1<|im_end|>\n"
            "<|im_start|>user\nq2<|im_end|>\n");
  EXPECT_EQ(Render(messages, {.add_generation_prompt = false, .preserve_thinking = true}),
            "<|im_start|>user\nq1<|im_end|>\n"
            "<|im_start|>assistant\n<think>\nr1\n</think>\n\na1<|im_end|>\n"
            "<|im_start|>user\nq2<|im_end|>\n");
}

TEST(Chat, KeepsReasoningAfterTheLastUserQuery) {
  EXPECT_EQ(Render({{"user", "q"}, {"assistant", "a", "r"}}, {.add_generation_prompt = false}),
            "<|im_start|>user\nq<|im_end|>\n"
            "<|im_start|>assistant\n<think>\nr\n</think>\n\na<|im_end|>\n");
  // A user turn that carries only a tool's result is not a query.
  EXPECT_EQ(Render({{"user", "q"},
                    {"assistant", "a", "r"},
                    {"user", "<tool_response>\n1\n</tool_response>"}},
                   {.add_generation_prompt = false}),
            "<|im_start|>user\nq<|im_end|>\n"
            "<|im_start|>assistant\n<think>\nr\n</think>\n\na<|im_end|>\n"
            "<|im_start|>user\n<tool_response>\n1\n</tool_response><|im_end|>\n");
}

TEST(Chat, FindsReasoningInsideTheContent) {
  const std::string content = "<think>\nstep\n</think>\n\nanswer";
  EXPECT_EQ(Render({{"user", "q"}, {"assistant", content}}, {.add_generation_prompt = false}),
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n" + content + "<|im_end|>\n");
  EXPECT_EQ(Render({{"user", "q"}, {"assistant", content}, {"user", "q2"}},
                   {.add_generation_prompt = false}),
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nanswer<|im_end|>\n"
            "<|im_start|>user\nq2<|im_end|>\n");
}

TEST(Chat, AllowsOneSystemMessageInFirstPlaceOnly) {
  ExpectRefused({{"user", "q"}, {"system", "s"}, {"user", "q"}}, Code::kMalformed,
                "/messages/1/role");
  ExpectRefused({{"system", "s"}, {"system", "s"}, {"user", "q"}}, Code::kMalformed,
                "/messages/1/role");
  ExpectRefused({{"system", "alone"}}, Code::kMalformed, "/messages");
}

TEST(Chat, RefusesConversationsWithoutAUserQuery) {
  ExpectRefused({}, Code::kMalformed, "/messages");
  ExpectRefused({{"assistant", "hello"}}, Code::kMalformed, "/messages");
  ExpectRefused({{"user", "<tool_response>x</tool_response>"}}, Code::kMalformed, "/messages");
}

TEST(Chat, RefusesUnknownRolesByName) {
  ExpectRefused({{"user", "q"}, {"tool", "1"}}, Code::kUnsupported, "/messages/1/role");
  ExpectRefused({{"developer", "d"}, {"user", "q"}}, Code::kUnsupported, "/messages/0/role");
}

TEST(Chat, RefusesIllFormedText) {
  ExpectRefused({{"user", "\xFF"}}, Code::kMalformed, "/messages/0/content");
  ExpectRefused({{"user", "q"}, {"assistant", "a", "\xC3"}}, Code::kMalformed,
                "/messages/1/reasoning");
}

}  // namespace
}  // namespace hallmark
