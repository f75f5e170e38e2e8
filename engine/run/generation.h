// SPDX-License-Identifier: Apache-2.0
// What one request asks of a session, and what came of it. Plain values.
#ifndef HALLMARK_ENGINE_RUN_GENERATION_H_
#define HALLMARK_ENGINE_RUN_GENERATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/run/sampler.h"

namespace hallmark {

// How tokens are guessed ahead. Changes speed and counts, never a token (clauses
// drafted-equals-undrafted, copy-gate-neutral).
struct DraftPolicy {
  // Use the session's drafter, where it has one.
  bool drafter = true;
  // Continue a repetition of the stream's own text when its last `copy_match` ids or more occurred
  // before; 0: never; at most CopyIndex::kLongestMatch. Absent: the model's default, 5, or 20 for
  // the dense 27B (hidden size 5120, 64 layers), so that short matches do not preempt its drafter.
  // A copy takes the place of the drafter's chain, from its first row on.
  std::optional<int64_t> copy_match;
  // Drafts verified a round at most. Absent: as measured costs and acceptance advise.
  std::optional<int64_t> window;
};

struct GenerateRequest {
  std::vector<int32_t> prompt;  // token ids, at least one
  int64_t max_tokens = 256;     // generated ids at most; 0 generates none
  SamplingParams sampling;
  bool ignore_stop = false;  // go on past stop ids
  int64_t prompt_chunk = 0;  // rows fed at once; 0: as many as fit. Changes no bit
  DraftPolicy draft;
  bool resume = true;  // begin from a kept state whose ids the prompt extends
  bool keep = true;    // leave kept states behind: one id before the prompt's end, the reply's end
  std::vector<int64_t> keep_at;  // and after these numbers of prompt ids, 1 .. prompt size

  // Called with each generated id; returning false ends the run. May be empty.
  std::function<bool(int32_t)> on_token;
  // Called with the logits [vocab_size] each id is drawn from and the id's position, before
  // on_token. May be empty.
  std::function<void(int64_t, std::span<const float>)> on_logits;
  bool digest = false;  // fill Generation::state_digest
};

enum class StopReason { kMaxTokens, kStopToken, kCaller, kContext, kCancelled };
std::string_view StopReasonName(StopReason reason);  // "max_tokens", "stop_token", ...

struct Generation {
  std::vector<int32_t> ids;  // generated, the stop id included when one was drawn
  StopReason stop = StopReason::kMaxTokens;
  int64_t rounds = 0;                // forward passes after the prompt's
  int64_t drafted = 0;               // ids verified that the drafter or a copy had proposed
  int64_t accepted = 0;              // of those, ids that were the target's own draw
  int64_t copied = 0;                // of the accepted, those that came from a copy
  std::optional<Error> draft_error;  // why the drafter was given up half-way
  int64_t resumed = 0;               // prompt ids that a kept state stood for
  int64_t peak_streams = 0;          // most streams in one of its rounds
  double prompt_seconds = 0;
  double decode_seconds = 0;
  // Sequence::StateDigest after prompt and reply, the last id excepted; empty unless asked for.
  std::string state_digest;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_RUN_GENERATION_H_
