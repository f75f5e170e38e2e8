// SPDX-License-Identifier: Apache-2.0
#include "tools/hallmark/prompts.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/model/model.h"
#include "engine/text/chat.h"
#include "engine/text/tokenizer.h"
#include "tools/hallmark/flags.h"

namespace hallmark {
namespace {

constexpr char kPrompts[] = "--prompts";

// What is wrong with the file is wrong with the flag, unless the system kept it from being read.
tl::unexpected<Error> BadFile(Error error) {
  if (error.code != Code::kIo) error.where.flag = kPrompts;
  return Fail(std::move(error));
}

tl::unexpected<Error> BadItem(std::string sentence, Locator where) {
  return Fail(Code::kMalformed, std::move(sentence), std::move(where));
}

Result<std::vector<int32_t>> ReadIds(const Json& item, const Locator& where) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < item.size(); ++i) {
    const Json& id = item[i];
    Locator place = where;
    place.pointer += "/" + std::to_string(i);
    if (!id.is_number_unsigned() ||
        id.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
      return BadItem("expected a token id, a whole number of 0 or more", place);
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

Result<std::vector<Prompt>> ReadJsonPrompts(const std::string& path) {
  auto read = ReadJsonFile(path);
  if (!read.has_value()) return BadFile(std::move(read).error());
  if (!read->is_array()) {
    return BadItem("expected an array of prompts", {.file = path, .flag = kPrompts});
  }
  std::vector<Prompt> prompts;
  for (size_t i = 0; i < read->size(); ++i) {
    const Json& item = (*read)[i];
    Prompt prompt{.where = {.file = path, .pointer = "/" + std::to_string(i), .flag = kPrompts}};
    if (item.is_string()) {
      prompt.text = item.get<std::string>();
    } else if (item.is_array()) {
      prompt.ids = TRY(ReadIds(item, prompt.where));
    } else {
      return BadItem("expected a string or an array of token ids", prompt.where);
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

Result<std::vector<Prompt>> ReadLines(const std::string& path) {
  auto file = MappedFile::Open(path);
  if (!file.has_value()) return BadFile(std::move(file).error());
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  std::vector<Prompt> prompts;
  // A mark of the byte order, which some editors put first, is none of the first prompt.
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const Locator where{.file = path, .byte = begin, .flag = kPrompts};
    if (line.empty()) {
      return Fail(Code::kOutOfRange,
                  "line " + std::to_string(prompts.size() + 1) +
                      " is empty, expected a prompt in every line",
                  where);
    }
    prompts.push_back({.text = std::string(line), .where = where});
    begin = end + 1;
  }
  return prompts;
}

Status CheckOneSource(const PromptFlags& flags) {
  std::vector<std::string> given;
  if (flags.text) given.push_back("--prompt");
  if (flags.ids) given.push_back("--ids");
  if (flags.file) given.push_back(kPrompts);
  if (given.size() == 1) return {};
  std::string found = "found neither --prompt nor --ids nor --prompts";
  if (given.size() == 2) found = "found both " + given[0] + " and " + given[1];
  if (given.size() == 3) found = "found --prompt, --ids and --prompts";
  return Fail(Code::kOutOfRange, found + ", expected one of them", {.flag = "--prompt"});
}

Result<std::vector<int32_t>> Encode(const std::string& text, bool chat,
                                    const Tokenizer& tokenizer) {
  if (!chat) return tokenizer.Encode(text);
  const std::vector<ChatMessage> turn = {{.role = "user", .content = text}};
  return tokenizer.Encode(TRY(RenderChat(turn)));
}

}  // namespace

Result<std::vector<Prompt>> ReadPrompts(const PromptFlags& flags) {
  TRY(CheckOneSource(flags));
  std::vector<Prompt> prompts;
  if (flags.text) {
    prompts.push_back({.text = *flags.text, .where = {.flag = "--prompt"}});
  } else if (flags.ids) {
    prompts.push_back({.ids = TRY(ParseIds(*flags.ids)), .where = {.flag = "--ids"}});
  } else {
    prompts =
        TRY(flags.file->ends_with(".json") ? ReadJsonPrompts(*flags.file) : ReadLines(*flags.file));
    if (prompts.empty()) {
      return Fail(Code::kOutOfRange, "found no prompt, expected one at least",
                  {.file = *flags.file, .flag = kPrompts});
    }
  }
  for (const Prompt& prompt : prompts) {
    if (!flags.chat || prompt.text) continue;
    return Fail(Code::kOutOfRange, "a conversation needs text, ids are run as they are",
                {.file = prompt.where.file, .pointer = prompt.where.pointer, .flag = "--chat"});
  }
  return prompts;
}

Result<std::vector<int32_t>> PromptIds(const Prompt& prompt, bool chat,
                                       const std::string& directory, const Session& session) {
  if (!prompt.text) {
    if (prompt.ids.empty()) return Fail(Code::kOutOfRange, "found no id", prompt.where);
    TRY(CheckIds(prompt.ids, session, prompt.where));
    return prompt.ids;
  }
  const Tokenizer* tokenizer = session.tokenizer();
  if (tokenizer == nullptr) {
    return Fail(Code::kNotFound,
                "the checkpoint has no tokenizer.json, so text cannot be read; give ids",
                {.file = directory + "/tokenizer.json", .flag = prompt.where.flag});
  }
  auto ids = Encode(*prompt.text, chat, *tokenizer);
  if (!ids.has_value()) {
    Error error = std::move(ids).error();
    error.where = prompt.where;
    return Fail(std::move(error));
  }
  if (ids->empty()) {
    return Fail(Code::kOutOfRange, "the prompt gives no token, expected some text", prompt.where);
  }
  const int64_t vocab = session.vocab_size();
  for (const int32_t id : *ids) {
    if (id < vocab) continue;
    return Fail(Code::kMismatch,
                "the tokenizer gives id " + std::to_string(id) + ", the model's vocabulary has " +
                    std::to_string(vocab),
                {.file = directory + "/tokenizer.json"});
  }
  TRY(CheckIds(*ids, session, prompt.where));
  return ids;
}

}  // namespace hallmark
