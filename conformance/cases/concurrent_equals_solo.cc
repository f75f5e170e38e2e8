// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/concurrent_equals_solo.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hallmark {
namespace {

constexpr int64_t kTokens = 24;

// Streams of different lengths, samplings and ways to draft; `index` counts them.
GenerateRequest StreamRequest(const LaneRuns& runs, int64_t index) {
  const auto& samplings = LaneSamplings();
  GenerateRequest request = runs.Request(
      LaneIds(runs.target().info().drawable_ids, "stream-" + std::to_string(index), 9 + 23 * index),
      samplings[static_cast<size_t>(index) % samplings.size()].name, kTokens + 3 * index);
  request.draft = {.drafter = index % 3 != 0, .copy_match = 5, .window = index % 3 * 4};
  return request;
}

// A neighbour whose fate is another one than to run to its end.
struct Disturbance {
  std::string name;
  // Submits it. Told the scheduler and a request to spoil.
  std::function<Status(Scheduler&, GenerateRequest)> submit;
};

// `streams` streams, one more every second round, each against its solo run.
Result<Row> Together(LaneRuns& runs, int64_t streams, const Disturbance* disturbance) {
  Target& target = runs.target();
  const uint64_t vocab = static_cast<uint64_t>(target.info().vocab);
  std::vector<const LaneRun*> solo;
  for (int64_t i = 0; i < streams; ++i) {
    solo.push_back(TRY(runs.Serial(StreamRequest(runs, i))));
  }
  BitsRow row;
  const int64_t pages_before = target.pages_held();
  int64_t peak = 0;
  {
    const std::unique_ptr<Scheduler> scheduler = runs.NewScheduler(target);
    std::vector<LaneRun> together(static_cast<size_t>(streams));
    std::vector<StreamId> ids;
    for (size_t i = 0; i < together.size(); ++i) {
      ids.push_back(TRY(scheduler->Submit(
          Remembering(StreamRequest(runs, static_cast<int64_t>(i)), together[i]))));
      if (disturbance != nullptr) {
        GenerateRequest neighbour = StreamRequest(runs, static_cast<int64_t>(i) + 1);
        TRY(disturbance->submit(*scheduler, std::move(neighbour)));
      }
      for (int round = 0; round < 2; ++round) TRY(scheduler->Round());
    }
    TRY(RunStreams(*scheduler));
    for (size_t i = 0; i < together.size(); ++i) {
      together[i].generation = TRY(scheduler->Take(ids[i]));
      peak = std::max(peak, together[i].generation.peak_streams);
      CompareLaneRuns(*solo[i], together[i], vocab, "stream " + std::to_string(i), row);
    }
  }
  if (target.pages_held() != pages_before) row.Refuse("pages were not given back");
  const int64_t least = disturbance == nullptr ? std::min<int64_t>(streams, 8) : 2;
  if (peak < least) {
    row.Refuse("at most " + std::to_string(peak) + " streams shared a round, expected " +
               std::to_string(least));
  }
  row.Count("peak_streams", static_cast<uint64_t>(peak));
  if (disturbance != nullptr) {
    // The next request must find the target as if nothing had been.
    const GenerateRequest next = StreamRequest(runs, 0);
    const std::unique_ptr<Scheduler> scheduler = runs.NewScheduler(target);
    CompareLaneRuns(*solo[0], TRY(RunOne(*scheduler, next)), vocab, "the next request", row);
    row.Count("disturbances", static_cast<uint64_t>(streams));
  }
  return row.Finish();
}

std::vector<Disturbance> Disturbances() {
  return {
      {"cancelled",
       [](Scheduler& scheduler, GenerateRequest request) -> Status {
         const StreamId id = TRY(scheduler.Submit(std::move(request)));
         TRY(scheduler.Round());
         if (!scheduler.Cancel(id)) return Fail(Code::kInternal, "nothing was cancelled");
         return {};
       }},
      {"cancelled-in-a-callback",
       [](Scheduler& scheduler, GenerateRequest request) -> Status {
         auto id = std::make_shared<StreamId>(0);
         request.on_token = [id, &scheduler](int32_t) { return scheduler.Cancel(*id); };
         *id = TRY(scheduler.Submit(std::move(request)));
         return {};
       }},
      {"caller-gone",
       [](Scheduler& scheduler, GenerateRequest request) -> Status {
         auto seen = std::make_shared<int>(0);
         request.on_token = [seen](int32_t) { return ++*seen < 3; };
         TRY(scheduler.Submit(std::move(request)));
         return {};
       }},
      {"refused",
       [](Scheduler& scheduler, GenerateRequest request) -> Status {
         request.prompt.push_back(-1);
         if (scheduler.Submit(std::move(request)).has_value()) {
           return Fail(Code::kInternal, "an id below the vocabulary was taken");
         }
         return {};
       }},
  };
}

}  // namespace

Status AddConcurrentEqualsSoloCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry) {
  for (const int64_t streams : {2, 4, 8}) {
    TRY(registry.Add("concurrent-equals-solo",
                     CaseName("staggered", {{"streams", std::to_string(streams)}}),
                     [runs, streams] { return Together(*runs, streams, nullptr); }));
  }
  return {};
}

Status AddFailureIsolationCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry) {
  for (const Disturbance& disturbance : Disturbances()) {
    TRY(registry.Add("failure-isolation", CaseName("neighbour", {{"fate", disturbance.name}}),
                     [runs, disturbance] { return Together(*runs, 3, &disturbance); }));
  }
  return {};
}

}  // namespace hallmark
