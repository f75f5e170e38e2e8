// SPDX-License-Identifier: Apache-2.0
// Scheduler: streams on one target, in rounds. A round admits whom there is room for, in the order
// they came; feeds one piece of the oldest unfinished prompt; and takes every decoding stream one
// window further in one shared pass. Timing decides how wide windows are and never a token (clauses
// drafted-equals-undrafted, concurrent-equals-solo, resumed-equals-fresh, failure-isolation).
//
// A stream that fails ends alone: a shared pass only verifies, so after an error every stream of it
// is run again by itself. Not thread-safe. Callbacks of a request may submit, cancel and take; a
// round inside a round is refused.
#ifndef HALLMARK_ENGINE_RUN_SCHEDULER_H_
#define HALLMARK_ENGINE_RUN_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/run/generation.h"
#include "engine/run/kept_states.h"
#include "engine/run/stream.h"
#include "engine/run/target.h"
#include "engine/run/window_planner.h"

namespace hallmark {

// Most rows of a round, and of a piece of prompt beside streams that decode: nobody waits long for
// one.
inline constexpr int64_t kRoundRows = 128;

inline constexpr int kMaxStreams = 8;

struct SchedulerOptions {
  int max_streams = kMaxStreams;  // that run at once, 1 .. kMaxStreams; others wait
  size_t kept_bytes = 0;          // of states kept for later prompts; 0: none are kept
  // What time it is, in seconds, for the planner of windows. Empty: the machine's steady clock.
  std::function<double()> clock;
};

class Scheduler {
 public:
  // `target` and `stop_ids` outlive the scheduler. kOutOfRange for a bad number of streams.
  static Result<std::unique_ptr<Scheduler>> Create(Target& target,
                                                   std::span<const int32_t> stop_ids,
                                                   const SchedulerOptions& options);
  // Queues a request. kOutOfRange with what is wrong in it; kResource when it could not run even
  // alone within the target's pages.
  Result<StreamId> Submit(GenerateRequest request);

  // One round. False when no stream is left to run.
  Result<bool> Round();

  // Ends a stream wherever it stands; what was drawn is kept for Take. False for one that is done
  // or unknown.
  bool Cancel(StreamId id);

  bool IsDone(StreamId id) const;
  // The outcome of a stream that is done, once; its error if it failed. kNotFound for one that is
  // unknown, taken or still running.
  Result<Generation> Take(StreamId id);

  // A callback of a request is being called.
  bool in_round() const { return in_round_; }
  const KeptStates& kept() const { return kept_; }
  // Streams that are queued or running.
  size_t active() const { return queued_.size() + running_.size(); }

 private:
  using StreamPtr = std::shared_ptr<Stream>;  // shared with the round that is under way

  Scheduler(Target& target, std::span<const int32_t> stop_ids, const SchedulerOptions& options);
  Status Check(const GenerateRequest& request) const;
  int64_t Pages(const Stream& stream) const;

  void Admit();
  Status Begin(Stream& stream);
  void FeedOnePrompt();
  Status FeedPiece(Stream& stream);
  void Keep(Stream& stream);
  void Decode();
  // Drafts for the streams whose plan says so; true if any was asked for. A stream whose draft
  // fails goes on without its drafter and says so in its result.
  bool MakeDrafts(std::span<const StreamPtr> streams, std::span<const WindowOffer> offers,
                  std::span<const int64_t> plan);
  using Window = std::span<const int32_t>;
  void RunWindows(std::span<const StreamPtr> streams, std::span<const Window> windows);
  Status AcceptWindow(Stream& stream, std::span<const float> logits, bool verified,
                      int64_t streams);
  // Moves streams that are done out of `running_`.
  void Settle();
  void Close(Stream& stream);

  Target& target_;
  std::span<const int32_t> stop_ids_;
  SchedulerOptions options_;
  KeptStates kept_;
  WindowPlanner planner_;
  StreamId next_id_ = 1;
  bool in_round_ = false;
  std::deque<StreamPtr> queued_;
  std::vector<StreamPtr> running_;  // in the order of admission
  std::vector<StreamPtr> done_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_RUN_SCHEDULER_H_
