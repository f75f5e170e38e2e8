// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/token_windows.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "conformance/cases/lane_runs.h"
#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/run/session.h"
#include "engine/run/target.h"

namespace hallmark {
namespace {

// A line of a file of windows.
struct WindowLine {
  const std::string& path;
  size_t number = 1;
  size_t begin = 0;  // in the file

  tl::unexpected<Error> Bad(Code code, const std::string& message, std::string pointer,
                            uint64_t byte = 0) const {
    return Fail(code, "line " + std::to_string(number) + ": " + message,
                {.file = path, .byte = begin + byte, .pointer = std::move(pointer)});
  }

  Result<TokenWindow> Read(std::string_view text, const WindowLimits& limits) const {
    const auto json = ParseJson(text, path);
    if (!json.has_value()) {
      const Error& error = json.error();
      return Bad(error.code, "expected a JSON object {\"ids\": [1, 2]}: " + error.message,
                 error.where.pointer, error.where.byte.value_or(0));
    }
    if (!json->is_object()) {
      return Bad(Code::kMalformed,
                 std::string("found ") + json->type_name() + ", expected an object with ids", "");
    }
    const auto ids = json->find("ids");
    if (ids == json->end() || !ids->is_array() || ids->empty()) {
      return Bad(Code::kMalformed, "expected ids, an array of a token id or more", "/ids");
    }
    if (static_cast<int64_t>(ids->size()) > limits.tokens) {
      return Bad(Code::kOutOfRange,
                 "found " + std::to_string(ids->size()) + " ids, expected " +
                     std::to_string(limits.tokens) + " at most: the model has no more positions",
                 "/ids");
    }
    return ReadIds(*ids, limits.vocab);
  }

 private:
  Result<TokenWindow> ReadIds(const Json& ids, int64_t vocab) const {
    TokenWindow window;
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string found = "found " + ids[i].dump(-1, ' ', true).substr(0, 40);
      const std::string pointer = "/ids/" + std::to_string(i);
      if (!ids[i].is_number_integer()) {
        return Bad(Code::kMalformed, found + ", expected a whole number", pointer);
      }
      if (!ids[i].is_number_unsigned() || ids[i].get<uint64_t>() >= static_cast<uint64_t>(vocab)) {
        return Bad(Code::kOutOfRange,
                   found + ", expected a token id from 0 to " + std::to_string(vocab - 1), pointer);
      }
      window.push_back(ids[i].get<int32_t>());
    }
    return window;
  }
};

}  // namespace

Result<std::vector<TokenWindow>> SampleWindows(Session& session, const WindowOptions& options,
                                               const StepProgress& progress) {
  const int64_t tokens = std::min(options.tokens, session.target().info().max_positions);
  if (options.windows < 1 || tokens <= kRuleIds) {
    return Fail(Code::kOutOfRange, "expected a window or more, of more than " +
                                       std::to_string(kRuleIds) + " ids each");
  }
  const auto windows = static_cast<size_t>(options.windows);
  const uint64_t total = windows * static_cast<uint64_t>(tokens - kRuleIds);
  uint64_t drawn = 0;
  std::vector<StreamId> streams;
  std::vector<TokenWindow> out;
  for (uint64_t i = 0; i < windows; ++i) {
    out.push_back(RulePrompt(session.drawable_ids(), kRuleIds, options.seed + i));
    GenerateRequest request{
        .prompt = out.back(),
        .max_tokens = tokens - kRuleIds,
        .sampling = {.temperature = 1.0, .top_p = 0.9, .seed = options.seed + i},
        .ignore_stop = true,
        .draft = {.drafter = false, .copy_match = 0},
        .resume = false,
        .keep = false};
    request.on_token = [&](int32_t) {
      if (progress && ++drawn % 64 == 0) progress("sampled ids", drawn, total);
      return true;
    };
    streams.push_back(TRY(session.Submit(std::move(request))));
  }
  while (TRY(session.Round())) {
  }
  for (size_t i = 0; i < windows; ++i) {
    const Generation generation = TRY(session.Take(streams[i]));
    out[i].insert(out[i].end(), generation.ids.begin(), generation.ids.end());
  }
  return out;
}

Result<std::vector<TokenWindow>> ReadWindows(const std::string& path, const WindowLimits& limits) {
  const MappedFile file = TRY(MappedFile::Open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  std::vector<TokenWindow> windows;
  int64_t room = limits.total;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const WindowLine line{.path = path, .number = windows.size() + 1, .begin = begin};
    auto window = line.Read(text.substr(begin, end - begin), limits);
    TRY(file.Intact());  // before a fault that zeros may have made
    windows.push_back(TRY(std::move(window)));
    const auto ids = static_cast<int64_t>(windows.back().size());
    if (ids > room) {
      return line.Bad(Code::kOutOfRange,
                      "expected " + std::to_string(limits.total) +
                          " ids at most in all windows: the source model's logits are held of each",
                      "/ids");
    }
    room -= ids;
    begin = end + 1;
  }
  if (windows.empty()) {
    return Fail(Code::kMalformed, "the file is empty, expected one {\"ids\": [1, 2]} a line",
                {.file = path});
  }
  return windows;
}

}  // namespace hallmark
