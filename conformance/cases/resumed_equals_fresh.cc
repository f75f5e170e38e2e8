// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/resumed_equals_fresh.h"

#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/wrapped_target.h"

namespace hallmark {
namespace {

constexpr char kClause[] = "resumed-equals-fresh";
constexpr int64_t kTokens = 6;
constexpr size_t kKeptBytes = size_t{1} << 32;

struct Split {
  int64_t kept;
  int64_t tail;
};
// 16 rows once took another arithmetic than 17 somewhere; so every end beside a border, both ways.
constexpr Split kSplits[] = {{100, 1},  {100, 15},  {100, 16},  {100, 17},  {100, 63}, {100, 64},
                             {100, 65}, {100, 127}, {100, 128}, {100, 129}, {64, 16},  {64, 17},
                             {256, 16}, {256, 17},  {255, 17},  {257, 16},  {512, 16}, {511, 17}};

// `resumed` against the same request fresh, and fresh again: three arms.
Result<Row> CompareArms(LaneRuns& runs, Scheduler& warm, const GenerateRequest& request,
                        int64_t kept) {
  const LaneRun* fresh = TRY(runs.Serial(request));
  GenerateRequest cold = request;
  cold.resume = cold.keep = false;
  cold.prompt_chunk = 33;  // other cuts than the resumed arm's
  cold.draft = {.drafter = false, .copy_match = 0, .window = 0};
  const std::unique_ptr<Scheduler> keeps_nothing = runs.NewScheduler(runs.target());
  const LaneRun again = TRY(RunOne(*keeps_nothing, cold));
  const LaneRun resumed = TRY(RunOne(warm, request));
  const uint64_t vocab = static_cast<uint64_t>(runs.target().info().vocab);
  BitsRow row;
  CompareLaneRuns(*fresh, again, vocab, "fresh again", row);
  CompareLaneRuns(*fresh, resumed, vocab, "resumed", row);
  if (resumed.generation.resumed != kept) {
    row.Refuse("resumed " + std::to_string(resumed.generation.resumed) + " rows, expected " +
               std::to_string(kept));
  }
  row.Count("resumed_rows", static_cast<uint64_t>(resumed.generation.resumed));
  row.Count("fed_rows", request.prompt.size() - static_cast<size_t>(resumed.generation.resumed));
  return row.Finish();
}

Result<Row> AfterPrompt(LaneRuns& runs, const Split& split) {
  const std::vector<int32_t> ids =
      LaneIds(runs.target().info().drawable_ids, "resumed", split.kept + split.tail);
  const std::unique_ptr<Scheduler> warm = runs.NewScheduler(runs.target(), kKeptBytes);
  GenerateRequest first = runs.Request({ids.begin(), ids.begin() + split.kept}, "greedy", 0);
  first.keep_at = {split.kept};
  TRY(RunOne(*warm, first));
  return CompareArms(runs, *warm, runs.Request(ids, "k20p95", kTokens), split.kept);
}

// The kept end is a reply's, drafted with windows accepted to every length.
Result<Row> AfterReply(LaneRuns& runs, int64_t tail) {
  constexpr int64_t kReply = 40;
  const int64_t drawable = runs.target().info().drawable_ids;
  GenerateRequest first = runs.Request(LaneIds(drawable, "replied", 50), "minp05", kReply);
  const LaneRun* serial = TRY(runs.Serial(first));
  std::vector<int32_t> text = first.prompt;
  text.insert(text.end(), serial->generation.ids.begin(), serial->generation.ids.end());
  ReplayTarget target(runs.target(), text, 7);
  first.draft = {.copy_match = 0, .window = 7};
  const std::unique_ptr<Scheduler> warm = runs.NewScheduler(target, kKeptBytes);
  const LaneRun drafted = TRY(RunOne(*warm, first));
  // The reply's last id was never fed: it is the first of the ids left over.
  std::vector<int32_t> prompt = text;
  const std::vector<int32_t> more = LaneIds(drawable, "replied-tail", tail - 1);
  prompt.insert(prompt.end(), more.begin(), more.end());
  GenerateRequest next = runs.Request(prompt, "greedy", kTokens);
  next.draft = {.drafter = false, .copy_match = 0, .window = 0};
  Row row = TRY(CompareArms(runs, *warm, next, static_cast<int64_t>(text.size()) - 1));
  row.counts["accepted"] = static_cast<uint64_t>(drafted.generation.accepted);
  return row;
}

// Two kept ends in one page, and a resume of the shorter that writes on past it: the longer one
// must not see a thing of it.
Result<Row> AfterBranch(LaneRuns& runs, int64_t shorter, int64_t longer) {
  const int64_t drawable = runs.target().info().drawable_ids;
  const std::vector<int32_t> ids = LaneIds(drawable, "branched", longer + 17);
  const std::unique_ptr<Scheduler> warm = runs.NewScheduler(runs.target(), kKeptBytes);
  GenerateRequest first = runs.Request({ids.begin(), ids.begin() + longer}, "greedy", 0);
  first.keep_at = {shorter, longer};
  TRY(RunOne(*warm, first));
  std::vector<int32_t> other(ids.begin(), ids.begin() + shorter);
  const std::vector<int32_t> tail = LaneIds(drawable, "branched-tail", longer - shorter + 9);
  other.insert(other.end(), tail.begin(), tail.end());
  const LaneRun branch = TRY(RunOne(*warm, runs.Request(other, "greedy", kTokens)));
  Row row = TRY(CompareArms(runs, *warm, runs.Request(ids, "k20p95", kTokens), longer));
  row.counts["branch_resumed_rows"] = static_cast<uint64_t>(branch.generation.resumed);
  return row;
}

}  // namespace

Status AddResumedEqualsFreshCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry) {
  for (const Split& split : kSplits) {
    TRY(registry.Add(kClause,
                     CaseName("prompt", {{"kept", std::to_string(split.kept)},
                                         {"tail", std::to_string(split.tail)}}),
                     [runs, split] { return AfterPrompt(*runs, split); }));
  }
  for (const auto& [shorter, longer] : {std::pair<int64_t, int64_t>{100, 150}, {200, 300}}) {
    TRY(registry.Add(kClause,
                     CaseName("branch", {{"shorter", std::to_string(shorter)},
                                         {"longer", std::to_string(longer)}}),
                     [runs, shorter = shorter, longer = longer] {
                       return AfterBranch(*runs, shorter, longer);
                     }));
  }
  for (const int64_t tail : {1, 16, 17, 65}) {
    TRY(registry.Add(kClause, CaseName("reply", {{"tail", std::to_string(tail)}}),
                     [runs, tail] { return AfterReply(*runs, tail); }));
  }
  return {};
}

}  // namespace hallmark
