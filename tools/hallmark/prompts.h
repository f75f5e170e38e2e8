// SPDX-License-Identifier: Apache-2.0
// Prompts as the command line gives them: text or ids, one, or a file of many. Reads and checks
// them; every refusal names the flag and, for a file, the place in it.
#ifndef HALLMARK_TOOLS_HALLMARK_PROMPTS_H_
#define HALLMARK_TOOLS_HALLMARK_PROMPTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/run/session.h"

namespace hallmark {

struct PromptFlags {
  std::optional<std::string> text, ids, file;  // --prompt, --ids, --prompts: exactly one
  bool chat = false;  // text becomes a user's turn, and the reply is asked for
};

struct Prompt {
  std::optional<std::string> text;  // absent: ids
  std::vector<int32_t> ids;
  Locator where;
};

// At least one. A file whose name ends in ".json" is a JSON array, each item a string or an array
// of ids; any other is UTF-8 text with one prompt a line.
Result<std::vector<Prompt>> ReadPrompts(const PromptFlags& flags);

// The ids to run: at least one, all inside the vocabulary, no more than positions.
Result<std::vector<int32_t>> PromptIds(const Prompt& prompt, bool chat,
                                       const std::string& directory, const Session& session);

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_HALLMARK_PROMPTS_H_
