// SPDX-License-Identifier: Apache-2.0
// FakeTarget: a Target whose logits are a hash of everything a state was fed, so that any slip of
// position, order, rollback or sharing changes tokens; SerialReply is what must come out. Keeps
// strict books: rows that wait, pages of forks, who was let go. Drafts are the truth for a while,
// then wrong. Faults are planted by id. For suites of the scheduler alone: nothing of a model is in
// it.
#ifndef HALLMARK_CONFORMANCE_LANES_FAKE_TARGET_H_
#define HALLMARK_CONFORMANCE_LANES_FAKE_TARGET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/run/generation.h"
#include "engine/run/target.h"

namespace hallmark {

struct FakeOptions {
  int64_t vocab = 40;
  int64_t max_positions = 90;
  int64_t max_rows = 24;
  int64_t max_drafts = 7;
  int64_t max_pages = 0;
  int64_t page_ids = 16;  // ids a page of the fake holds
  bool echoes = false;    // likes to go on as after the last time its newest id occurred
  // Ids that break something once they are fed: the call, the logits; or a draft from them.
  int32_t call_breaker = -1;
  int32_t logits_breaker = -1;
  int32_t draft_breaker = -1;
};

class FakeTarget : public Target {
 public:
  explicit FakeTarget(const FakeOptions& options);
  ~FakeTarget() override;

  const TargetInfo& info() const override { return info_; }
  Result<std::unique_ptr<TargetState>> Create() override;
  Result<std::unique_ptr<TargetState>> Fork(const TargetState& state) override;
  Result<std::vector<std::vector<float>>> Run(std::span<const TargetSlice> slices) override;
  Status Commit(TargetState& state, int64_t rows) override;
  Result<std::vector<std::vector<int32_t>>> Draft(std::span<const DraftAsk> asks) override;
  void set_reclaim(std::function<bool()> reclaim) override { reclaim_ = std::move(reclaim); }
  int64_t pages_held() const override { return *pages_held_; }

  // Logits [vocab] after `history`.
  std::vector<float> LogitsAfter(std::span<const int32_t> history) const;
  // Rules of the interface that the scheduler broke; empty while it behaves.
  const std::vector<std::string>& complaints() const { return complaints_; }
  int64_t live_states() const { return *live_states_; }
  int64_t widest_call() const { return widest_call_; }  // most states in one Run
  const FakeOptions& options() const { return options_; }

 private:
  struct State;
  Status TakePages(State& state, int64_t ids);
  void Complain(std::string what) { complaints_.push_back(std::move(what)); }

  FakeOptions options_;
  TargetInfo info_;
  std::function<bool()> reclaim_;
  std::shared_ptr<int64_t> pages_held_ = std::make_shared<int64_t>(0);
  std::shared_ptr<int64_t> live_states_ = std::make_shared<int64_t>(0);
  int64_t widest_call_ = 0;
  std::vector<std::string> complaints_;
};

// One token after another, on nothing but LogitsAfter and SampleToken. An error where a stream must
// end with one; `resumed`, counts and times are not filled.
Result<Generation> SerialReply(const FakeTarget& target, const GenerateRequest& request,
                               std::span<const int32_t> stop_ids);

// The digest of a state that was fed `history`.
std::string FakeDigest(std::span<const int32_t> history);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_LANES_FAKE_TARGET_H_
