// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/drafted_equals_undrafted.h"

#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/wrapped_target.h"

namespace hallmark {
namespace {

constexpr int64_t kTokens = 48;
constexpr int64_t kReplayed = 7;  // drafts of the replayed drafter: lengths 0 to 7 take 36 ids
constexpr int64_t kWindow = 15;   // at most; a drafter may propose fewer

std::vector<int32_t> Prompt(const LaneRuns& runs) {
  return LaneIds(runs.target().info().drawable_ids, "drafted", 40);
}

// A text that says itself over and over, with a slip in every round, so that copies of every gate
// are found, land, and fail.
std::vector<int32_t> RepeatingText(const LaneRuns& runs) {
  const int64_t drawable = runs.target().info().drawable_ids;
  const std::vector<int32_t> once = LaneIds(drawable, "drafted", 26);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 4; ++i) {
    ids.insert(ids.end(), once.begin(), once.end());
    ids.back() = static_cast<int32_t>((ids.back() + i) % drawable);
  }
  return ids;
}

void CountRounds(const LaneRun& run, BitsRow& row) {
  row.Count("rounds", static_cast<uint64_t>(run.generation.rounds));
  row.Count("drafted", static_cast<uint64_t>(run.generation.drafted));
}

// The reply with `draft` against the serial one, both on `target`.
Result<Row> Compare(LaneRuns& runs, Target& target, std::vector<int32_t> prompt,
                    const std::string& sampling, const DraftPolicy& draft) {
  GenerateRequest request = runs.Request(std::move(prompt), sampling, kTokens);
  const LaneRun serial = TRY(RunOne(*runs.NewScheduler(target), SerialOf(request)));
  request.draft = draft;
  const LaneRun run = TRY(RunOne(*runs.NewScheduler(target), request));
  BitsRow row;
  CompareLaneRuns(serial, run, static_cast<uint64_t>(target.info().vocab), "drafted", row);
  CountRounds(run, row);
  if (draft.copy_match != 0) row.Count("copied", static_cast<uint64_t>(run.generation.copied));
  return row.Finish();
}

// A reply that repeats what the prompt said, copied with `gate`.
Result<Row> Copied(LaneRuns& runs, const std::string& sampling, int64_t gate, bool drafter) {
  const std::vector<int32_t> text = RepeatingText(runs);
  ScriptedTarget target(runs.target(), text);
  return Compare(runs, target, {text.begin(), text.begin() + 40}, sampling,
                 {.drafter = drafter, .copy_match = gate, .window = kWindow});
}

Result<Row> Replay(LaneRuns& runs, const std::string& sampling) {
  GenerateRequest request = runs.Request(Prompt(runs), sampling, kTokens);
  const LaneRun* serial = TRY(runs.Serial(request));
  std::vector<int32_t> text = request.prompt;
  text.insert(text.end(), serial->generation.ids.begin(), serial->generation.ids.end());
  ReplayTarget target(runs.target(), text, kReplayed);
  request.draft = {.copy_match = 0, .window = kReplayed};
  const std::unique_ptr<Scheduler> scheduler = runs.NewScheduler(target);
  const LaneRun run = TRY(RunOne(*scheduler, request));
  BitsRow row;
  CompareLaneRuns(*serial, run, static_cast<uint64_t>(target.info().vocab), "replayed", row);
  CountRounds(run, row);
  row.Count("accepted", static_cast<uint64_t>(run.generation.accepted));
  if (run.generation.rounds >= kTokens) row.Refuse("no draft landed");
  return row.Finish();
}

// The drafter's own worth over all samplings: a receipt for one that never lands shows nothing.
Result<Row> Lands(LaneRuns& runs) {
  BitsRow row;
  for (const LaneSampling& sampling : LaneSamplings()) {
    GenerateRequest request = runs.Request(Prompt(runs), sampling.name, kTokens);
    const LaneRun* serial = TRY(runs.Serial(request));
    request.draft = {.copy_match = 0, .window = kWindow};
    const std::unique_ptr<Scheduler> scheduler = runs.NewScheduler(runs.target());
    const LaneRun run = TRY(RunOne(*scheduler, request));
    row.Compare<int32_t>(serial->generation.ids, run.generation.ids, sampling.name);
    CountRounds(run, row);
    row.Count("accepted", static_cast<uint64_t>(run.generation.accepted));
    row.Count("ids", run.generation.ids.size());
  }
  return row.Finish();
}

}  // namespace

Status AddDraftedEqualsUndraftedCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry) {
  constexpr char kClause[] = "drafted-equals-undrafted";
  for (const LaneSampling& sampling : LaneSamplings()) {
    const std::string name = sampling.name;
    TRY(registry.Add(kClause, CaseName("replayed", {{"sampling", name}}),
                     [runs, name] { return Replay(*runs, name); }));
    if (!runs->has_drafter()) continue;
    TRY(registry.Add(kClause, CaseName("drafter", {{"sampling", name}}), [runs, name] {
      return Compare(*runs, runs->target(), Prompt(*runs), name,
                     {.copy_match = 0, .window = kWindow});
    }));
    TRY(registry.Add(kClause, CaseName("both", {{"sampling", name}}),
                     [runs, name] { return Copied(*runs, name, 5, true); }));
  }
  if (!runs->has_drafter()) return {};
  return registry.Add(kClause, "drafts-land", [runs] { return Lands(*runs); });
}

Status AddCopyGateNeutralCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry) {
  for (const int64_t gate : {5, 8, 20}) {
    for (const std::string sampling : {"greedy", "k20p95"}) {
      TRY(registry.Add("copy-gate-neutral",
                       CaseName("copies", {{"gate", std::to_string(gate)}, {"sampling", sampling}}),
                       [runs, gate, sampling] { return Copied(*runs, sampling, gate, false); }));
    }
  }
  return {};
}

}  // namespace hallmark
