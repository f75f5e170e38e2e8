// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/lane_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/random.h"
#include "engine/base/sha256.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr int64_t kWindow = 4;

}  // namespace

const std::vector<LaneSampling>& LaneSamplings() {
  static const std::vector<LaneSampling> samplings = {
      {"greedy", {}},
      {"k20p95", {.temperature = 1.0, .top_k = 20, .top_p = 0.95, .seed = 1234}},
      {"k20p95b", {.temperature = 1.0, .top_k = 20, .top_p = 0.95, .seed = 1237}},
      {"minp05", {.temperature = 0.7, .min_p = 0.05, .seed = 1235}},
      {"all", {.temperature = 1.0, .seed = 1238}},
  };
  return samplings;
}

const SamplingParams& LaneSamplingOf(const std::string& name) {
  for (const LaneSampling& sampling : LaneSamplings()) {
    if (sampling.name == name) return sampling.params;
  }
  CHECK(false);
  return LaneSamplings()[0].params;
}

std::vector<std::string> LaneSamplingTexts() {
  std::vector<std::string> texts;
  for (const LaneSampling& sampling : LaneSamplings()) {
    const SamplingParams& params = sampling.params;
    texts.push_back(fmt::format(
        "{}: temperature {:.2f}, top-k {}, top-p {:.2f}, min-p {:.2f}, seed {}", sampling.name,
        params.temperature, params.top_k, params.top_p, params.min_p, params.seed));
  }
  return texts;
}

std::span<const LanePrompt> LanePrompts() {
  static constexpr uint64_t kResumed = 0x726573756D6564ull;
  static constexpr uint64_t kStream = 0x636F6E637572ull;
  static constexpr LanePrompt kPrompts[] = {
      {"windows", 0x77696E646F7773ull, 517},
      {"drafted", 0x64726166746564ull, 40},
      {"resumed", kResumed, 528},
      {"replied", kResumed + 1, 50},
      {"replied-tail", kResumed + 2, 64},
      {"branched", kResumed + 3, 317},
      {"branched-tail", kResumed + 4, 109},
      {"stream-0", kStream, 9},
      {"stream-1", kStream + 1, 32},
      {"stream-2", kStream + 2, 55},
      {"stream-3", kStream + 3, 78},
      {"stream-4", kStream + 4, 101},
      {"stream-5", kStream + 5, 124},
      {"stream-6", kStream + 6, 147},
      {"stream-7", kStream + 7, 170},
  };
  return kPrompts;
}

std::vector<int32_t> LaneIds(int64_t drawable_ids, std::string_view name, int64_t tokens) {
  for (const LanePrompt& prompt : LanePrompts()) {
    if (prompt.name != name) continue;
    CHECK(tokens <= prompt.tokens);
    return RulePrompt(drawable_ids, tokens, prompt.seed);
  }
  CHECK(false);
  return {};
}

std::vector<int32_t> RulePrompt(int64_t drawable_ids, int64_t tokens, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < tokens; ++i) {
    ids.push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(drawable_ids))));
  }
  return ids;
}

GenerateRequest Remembering(GenerateRequest request, LaneRun& run) {
  request.digest = true;
  request.on_logits = [&run](int64_t, std::span<const float> logits) {
    run.logit_digests.push_back(Sha256HexOf(logits));
  };
  return request;
}

Status RunStreams(Scheduler& scheduler) {
  while (TRY(scheduler.Round())) {
  }
  return {};
}

Result<LaneRun> RunOne(Scheduler& scheduler, const GenerateRequest& request) {
  LaneRun run;
  const StreamId id = TRY(scheduler.Submit(Remembering(request, run)));
  TRY(RunStreams(scheduler));
  run.generation = TRY(scheduler.Take(id));
  return run;
}

GenerateRequest SerialOf(GenerateRequest request) {
  request.draft = {.drafter = false, .copy_match = 0, .window = 0};
  request.resume = request.keep = false;
  request.keep_at.clear();
  return request;
}

bool LaneRuns::has_drafter() const {
  return subject_.session == nullptr || subject_.session->drafter() != nullptr;
}
Target& LaneRuns::target() const { return subject_.session->target(); }
const std::vector<int32_t>& LaneRuns::stop_ids() const { return subject_.session->stop_ids(); }

std::unique_ptr<Scheduler> LaneRuns::NewScheduler(Target& target, size_t kept_bytes) const {
  auto scheduler = Scheduler::Create(target, stop_ids(), {.kept_bytes = kept_bytes});
  CHECK(scheduler.has_value());
  return std::move(*scheduler);
}

GenerateRequest LaneRuns::Request(std::vector<int32_t> prompt, const std::string& sampling,
                                  int64_t tokens) const {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.sampling = LaneSamplingOf(sampling);
  request.ignore_stop = true;
  request.draft.window = kWindow;
  return request;
}

Result<const LaneRun*> LaneRuns::Serial(const GenerateRequest& request) {
  const SamplingParams& params = request.sampling;
  Key key{request.prompt, params.temperature, params.top_k,      params.top_p,
          params.min_p,   params.seed,        request.max_tokens};
  auto found = serial_.find(key);
  if (found == serial_.end()) {
    LaneRun run = TRY(RunOne(*NewScheduler(target()), SerialOf(request)));
    found = serial_.emplace(std::move(key), std::move(run)).first;
  }
  return &found->second;
}

void CompareLaneRuns(const LaneRun& serial, const LaneRun& run, uint64_t vocab,
                     const std::string& where, BitsRow& row) {
  row.Compare<int32_t>(serial.generation.ids, run.generation.ids, where + ": the ids");
  if (run.generation.draft_error) {
    row.Refuse(where + ": the drafter failed: " + run.generation.draft_error->message);
  }
  row.CompareDigests(serial.generation.state_digest, run.generation.state_digest, 0,
                     where + ": the state after the reply");
  if (serial.logit_digests.size() != run.logit_digests.size()) {
    row.Refuse(where + ": the runs drew different numbers of ids");
  }
  const size_t draws = std::min(serial.logit_digests.size(), run.logit_digests.size());
  for (size_t i = 0; i < draws; ++i) {
    row.CompareDigests(serial.logit_digests[i], run.logit_digests[i], vocab,
                       where + ": the logits of id " + std::to_string(i));
  }
  row.Count("ids", run.generation.ids.size());
}

}  // namespace hallmark
