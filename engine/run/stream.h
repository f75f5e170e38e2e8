// SPDX-License-Identifier: Apache-2.0
// Stream: one request on its way: its ids, its state on the target, what is still to be fed, drawn
// or kept. The rules of one stream stand here; how streams share rounds is scheduler.h's.
#ifndef HALLMARK_ENGINE_RUN_STREAM_H_
#define HALLMARK_ENGINE_RUN_STREAM_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/draft/copy_index.h"
#include "engine/run/generation.h"
#include "engine/run/stream_id.h"
#include "engine/run/target.h"
#include "engine/run/window_planner.h"

namespace hallmark {

enum class StreamPhase { kQueued, kFilling, kDecoding, kDone };

class Stream {
 public:
  // The request has been checked against the target. `stop_ids` outlives the stream.
  Stream(StreamId id, GenerateRequest request, const TargetInfo& info,
         std::span<const int32_t> stop_ids);

  StreamId id() const { return id_; }
  const GenerateRequest& request() const { return request_; }
  StreamPhase phase() const { return phase_; }
  // Positions it can come to hold at most.
  int64_t max_positions() const;

  // Queued -> filling, on a state that the first `state->position()` prompt ids were fed to.
  void Start(std::unique_ptr<TargetState> state);
  TargetState& state() { return *state_; }

  // Filling: the prompt ids to feed next, `max_rows` at most, up to the next place to keep.
  std::span<const int32_t> NextPiece(int64_t max_rows) const;
  bool IsLastPiece(std::span<const int32_t> piece) const;
  // Whether the state, where it stands now, is to be kept.
  bool AtKeepPoint() const;
  // The first `count` ids of prompt and reply.
  std::span<const int32_t> Ids(int64_t count) const;
  // After the last piece: draws the first id, or ends a stream that asked for none.
  Status FinishPrompt(std::span<const float> logits);

  // Decoding: what it could verify in the coming round, copies looked up.
  WindowOffer Offer();
  // The last drawn id and `guesses` of the offer's, which for a drafted offer SetDrafts gave.
  void SetDrafts(std::vector<int32_t> drafts);
  // No drafts from here on: tokens never depend on them.
  void GiveUpDrafter(Error error);
  std::span<const int32_t> Window(int64_t guesses);
  // Draws from logits [window, vocab], row by row while the draw equals the next guess, and hands
  // the ids out. Gives the rows that must join the state.
  Result<int64_t> Accept(std::span<const float> logits, int64_t streams);

  // Ends the stream. What it kept in its state is released by TakeState or with the stream.
  void Finish(StopReason reason);
  void Fail(Error error);
  std::unique_ptr<TargetState> TakeState() { return std::move(state_); }

  const std::optional<Error>& error() const { return error_; }
  Generation& generation() { return generation_; }

 private:
  Result<int32_t> Draw(std::span<const float> logits, int64_t position) const;
  // Hands one id out; ends the stream where the id or the caller says so.
  void Emit(int32_t id, std::span<const float> logits, int64_t position);

  StreamId id_;
  GenerateRequest request_;
  const TargetInfo* info_;
  std::span<const int32_t> stop_ids_;
  StreamPhase phase_ = StreamPhase::kQueued;
  std::unique_ptr<TargetState> state_;
  std::vector<int64_t> keep_points_;  // ascending
  std::vector<int32_t> ids_;          // prompt, then reply
  CopyIndex copies_;                  // over ids_
  int64_t copy_gate_ = 0;
  std::vector<int32_t> guesses_;  // of the coming round
  bool guesses_copied_ = false;
  std::vector<int32_t> window_;
  int64_t window_start_ = 0;  // position of its first id
  LandingChance draft_chance_{0.5};
  LandingChance copy_chance_{0.6};
  Generation generation_;
  std::optional<Error> error_;
  std::chrono::steady_clock::time_point mark_;  // start, then end of the prompt
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_RUN_STREAM_H_
