// SPDX-License-Identifier: Apache-2.0
// Lane runs: requests on a target's streams, each remembered as ids, digests of the logits its ids
// were drawn from, and the digest of the state it left; and the serial run that they must equal:
// alone, one row a round, nothing drafted, copied, resumed or kept. Serial runs are made once.
#ifndef HALLMARK_CONFORMANCE_CASES_LANE_RUNS_H_
#define HALLMARK_CONFORMANCE_CASES_LANE_RUNS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "conformance/cases/bits_row.h"
#include "conformance/cases/subject.h"
#include "engine/run/scheduler.h"

namespace hallmark {

// How ids are drawn, and under which name cases speak of it.
struct LaneSampling {
  std::string name;
  SamplingParams params;
};
// Greedy; T 1.0 top-k 20 top-p 0.95; T 0.7 min-p 0.05; T 1.0 with every id; seeds 1234 to 1238.
const std::vector<LaneSampling>& LaneSamplings();
const SamplingParams& LaneSamplingOf(const std::string& name);

// The same in words, for a receipt's settings.
std::vector<std::string> LaneSamplingTexts();

// `tokens` ids by rule: SplitMix64(seed).Below(drawable ids), one after another.
std::vector<int32_t> RulePrompt(int64_t drawable_ids, int64_t tokens, uint64_t seed);

// Every rule prompt of the cases of lanes; receipts name them. Cases use the first ids of one.
struct LanePrompt {
  std::string_view name;
  uint64_t seed;
  int64_t tokens;  // at most
};
std::span<const LanePrompt> LanePrompts();
// The first `tokens` ids of a prompt;
std::vector<int32_t> LaneIds(int64_t drawable_ids, std::string_view name, int64_t tokens);

struct LaneRun {
  Generation generation;                   // its state_digest filled
  std::vector<std::string> logit_digests;  // one an id
};

// A request whose logits are remembered in `run`, which outlives it.
GenerateRequest Remembering(GenerateRequest request, LaneRun& run);
// Runs every active stream to its end.
Status RunStreams(Scheduler& scheduler);
// Submits, runs and takes one.
Result<LaneRun> RunOne(Scheduler& scheduler, const GenerateRequest& request);

// The same request with nothing drafted, copied, resumed or kept.
GenerateRequest SerialOf(GenerateRequest request);

class LaneRuns {
 public:
  explicit LaneRuns(const CaseSubject& subject) : subject_(subject) {}

  // Whether cases that need a drafter have one; true where cases are only listed.
  bool has_drafter() const;
  Target& target() const;
  const std::vector<int32_t>& stop_ids() const;
  std::unique_ptr<Scheduler> NewScheduler(Target& target, size_t kept_bytes = 0) const;

  // A request that draws `tokens` ids past every stop id, in windows of a fixed width: what a case
  // goes through must not hang on how fast the machine is.
  GenerateRequest Request(std::vector<int32_t> prompt, const std::string& sampling,
                          int64_t tokens) const;
  // The serial run of it. The pointer lives as long as this object.
  Result<const LaneRun*> Serial(const GenerateRequest& request);

 private:
  CaseSubject subject_;
  // Prompt; temperature, top-k, top-p, min-p, seed; tokens.
  using Key = std::tuple<std::vector<int32_t>, double, int64_t, double, double, uint64_t, int64_t>;
  std::map<Key, LaneRun> serial_;
};

// Compares ids, logits and state of `run` with the serial one's, named `where`, into `row`.
void CompareLaneRuns(const LaneRun& serial, const LaneRun& run, uint64_t vocab,
                     const std::string& where, BitsRow& row);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_LANE_RUNS_H_
