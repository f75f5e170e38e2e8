// SPDX-License-Identifier: Apache-2.0
// Target: what streams run on, seen by the scheduler: states that take ids and give logits, windows
// that wait for a verdict, and drafts. ModelTarget is the engine's own; suites put in targets whose
// every slip shows. Not thread-safe.
#ifndef HALLMARK_ENGINE_RUN_TARGET_H_
#define HALLMARK_ENGINE_RUN_TARGET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/forward.h"
#include "engine/run/sampler.h"

namespace hallmark {

// What one stream's ids leave behind, the drafter's context included.
class TargetState {
 public:
  virtual ~TargetState() = default;
  // Ids that have joined.
  virtual int64_t position() const = 0;
  // Of everything held, shared pages counted in full.
  virtual size_t bytes() const = 0;
  // Equal iff every later token is decided alike.
  virtual Result<std::string> Digest() const = 0;
  // Lets go of memory that only rows on their way need, rows that wait included; for a state that
  // will be kept. Not counted in bytes().
  virtual void DropWindow() {}
};

struct TargetSlice {
  TargetState* state = nullptr;
  std::span<const int32_t> ids;
  LogitRows logits = LogitRows::kLast;
  bool verify = false;  // the rows wait for Commit; else they join
};

struct DraftAsk {
  TargetState* state = nullptr;
  int32_t anchor = 0;  // drawn, not fed yet: stands at state->position()
  SamplingParams sampling;
};

struct TargetInfo {
  int64_t vocab = 0;
  int64_t drawable_ids = 0;                // ids below it may be drawn
  int64_t max_positions = 0;               // of one stream
  int64_t max_rows = 0;                    // of one Run
  int64_t max_drafts = 0;                  // ids a Draft proposes at most; 0: there is no drafter
  int64_t copy_match = 5;                  // the default gate for copies
  int64_t max_pages = 0;                   // for all states together; 0: no bound
  int64_t page_positions = kKvPageTokens;  // that one page holds
  Locator positions_where;                 // where max_positions is stated
  Locator head_where;                      // what a logit that is not finite speaks against
};

class Target {
 public:
  virtual ~Target() = default;
  virtual const TargetInfo& info() const = 0;

  virtual Result<std::unique_ptr<TargetState>> Create() = 0;
  // A second state at the same position; neither sees what the other does later.
  virtual Result<std::unique_ptr<TargetState>> Fork(const TargetState& state) = 0;

  // Feeds every slice at its state's position; at most max_rows rows in all, each state once. Gives
  // logits [rows asked for, vocab] a slice. After an error, states whose rows did not ask to be
  // verified are of no use; the others are as they were.
  virtual Result<std::vector<std::vector<float>>> Run(std::span<const TargetSlice> slices) = 0;
  // The first `rows` verified rows of the last Run join; the rest is dropped. Before the next Run.
  virtual Status Commit(TargetState& state, int64_t rows) = 0;

  // Up to max_drafts ids a state that may follow its anchor. Guesses: no rule binds them.
  virtual Result<std::vector<std::vector<int32_t>>> Draft(std::span<const DraftAsk> asks) = 0;

  // What to ask when pages run out; returns whether it let some go.
  virtual void set_reclaim(std::function<bool()> reclaim) = 0;
  // Pages that all states hold, a shared one counted once.
  virtual int64_t pages_held() const = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_RUN_TARGET_H_
