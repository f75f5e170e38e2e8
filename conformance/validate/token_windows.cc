// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/token_windows.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "conformance/cases/lane_runs.h"
#include "engine/base/json.h"
#include "engine/run/session.h"
#include "engine/run/target.h"

namespace hallmark {

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

Result<std::vector<TokenWindow>> ReadWindows(const std::string& path, int64_t vocab) {
  const Json json = TRY(ReadJsonFile(path));
  const auto bad = [&](Code code, std::string message, const std::string& pointer) {
    return Fail(code, std::move(message), {.file = path, .pointer = pointer});
  };
  if (!json.is_array() || json.empty()) {
    return bad(Code::kMalformed, "expected an array of windows", "");
  }
  std::vector<TokenWindow> out;
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string at = "/" + std::to_string(i);
    if (!json[i].is_array() || json[i].size() < 2) {
      return bad(Code::kMalformed, "expected an array of two ids or more", at);
    }
    TokenWindow window;
    for (size_t j = 0; j < json[i].size(); ++j) {
      const Json& id = json[i][j];
      const std::string pointer = at + "/" + std::to_string(j);
      if (!id.is_number_integer()) return bad(Code::kMalformed, "expected a token id", pointer);
      if (id < 0 || id >= vocab) {
        return bad(Code::kOutOfRange, "expected a token id below " + std::to_string(vocab),
                   pointer);
      }
      window.push_back(id.get<int32_t>());
    }
    out.push_back(std::move(window));
  }
  return out;
}

}  // namespace hallmark
