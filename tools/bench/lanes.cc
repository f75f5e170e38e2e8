// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "conformance/cases/lane_runs.h"
#include "conformance/cases/wrapped_target.h"
#include "engine/run/scheduler.h"

namespace hallmark {
namespace {

constexpr uint64_t kTextSeed = 0x636F70696573ull;
constexpr int64_t kPeriod = 40;  // ids after which the copies' text begins again

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double TokensPerSecond(const Generation& reply) {
  return static_cast<double>(reply.ids.size()) / std::max(reply.decode_seconds, 1e-9);
}

// Both arms of one request, in turn.
struct Pair {
  std::vector<double> serial, ratio;
  Generation last;

  Status Run(Scheduler& scheduler, const GenerateRequest& request) {
    const Generation serial_reply = TRY(RunOne(scheduler, SerialOf(request))).generation;
    last = TRY(RunOne(scheduler, request)).generation;
    if (last.ids != serial_reply.ids) {
      return Fail(Code::kMismatch, "drafting changed an id, so no speed counts");
    }
    serial.push_back(TokensPerSecond(serial_reply));
    ratio.push_back(TokensPerSecond(last) / serial.back());
    return {};
  }
  double ids_a_round() const {
    return static_cast<double>(last.ids.size()) /
           static_cast<double>(std::max<int64_t>(last.rounds, 1));
  }
};

GenerateRequest RequestOf(std::vector<int32_t> prompt, int64_t tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.ignore_stop = true;
  request.resume = request.keep = false;
  return request;
}

}  // namespace

Result<Json> RunLaneBench(Session& session, const LaneBenchOptions& options) {
  Target& real = session.target();
  const std::unique_ptr<Scheduler> scheduler = TRY(Scheduler::Create(real, {}, {}));
  std::vector<Pair> pairs(options.prompts.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      TRY(pairs[i].Run(*scheduler, RequestOf(options.prompts[i], options.tokens)));
    }
  }
  Json prompts = Json::array();
  for (const Pair& pair : pairs) {
    prompts.push_back({{"serial_tokens_per_second", Median(pair.serial)},
                       {"drafted_over_serial", Median(pair.ratio)},
                       {"ids_a_round", pair.ids_a_round()},
                       {"drafted", pair.last.drafted},
                       {"accepted", pair.last.accepted}});
  }

  std::vector<int32_t> text;
  const std::vector<int32_t> once = RulePrompt(real.info().drawable_ids, kPeriod, kTextSeed);
  while (static_cast<int64_t>(text.size()) < 2 * kPeriod + options.tokens) {
    text.insert(text.end(), once.begin(), once.end());
  }
  ScriptedTarget scripted(real, text);
  const std::unique_ptr<Scheduler> copies = TRY(Scheduler::Create(scripted, {}, {}));
  GenerateRequest request = RequestOf({text.begin(), text.begin() + 2 * kPeriod}, options.tokens);
  request.draft.drafter = false;
  Pair pair;
  for (int round = 0; round < options.rounds; ++round) TRY(pair.Run(*copies, request));
  return Json{{"prompts", prompts},
              {"copies",
               {{"serial_tokens_per_second", Median(pair.serial)},
                {"copied_over_serial", Median(pair.ratio)},
                {"ids_a_round", pair.ids_a_round()},
                {"copied", pair.last.copied}}},
              {"tokens", options.tokens},
              {"rounds", options.rounds}};
}

std::string LaneBenchText(const Json& result) {
  std::string text = fmt::format("{:<10} {:>12} {:>12} {:>12} {:>9} {:>9}\n", "", "serial tok/s",
                                 "over serial", "ids a round", "drafted", "accepted");
  size_t number = 0;
  for (const Json& prompt : result["prompts"]) {
    text += fmt::format("prompt {:<3} {:>12.1f} {:>12.2f} {:>12.2f} {:>9} {:>9}\n", ++number,
                        prompt["serial_tokens_per_second"].get<double>(),
                        prompt["drafted_over_serial"].get<double>(),
                        prompt["ids_a_round"].get<double>(), prompt["drafted"].get<int64_t>(),
                        prompt["accepted"].get<int64_t>());
  }
  const Json& copies = result["copies"];
  text += fmt::format("copies     {:>12.1f} {:>12.2f} {:>12.2f} {:>9} {:>9}\n",
                      copies["serial_tokens_per_second"].get<double>(),
                      copies["copied_over_serial"].get<double>(),
                      copies["ids_a_round"].get<double>(), "", copies["copied"].get<int64_t>());
  text +=
      fmt::format("(medians of {} rounds, {} ids each; \"copies\" is a text that repeats itself)\n",
                  result["rounds"].get<int>(), result["tokens"].get<int64_t>());
  return text;
}

}  // namespace hallmark
