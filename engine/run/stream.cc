// SPDX-License-Identifier: Apache-2.0
#include "engine/run/stream.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace hallmark {
namespace {

using Clock = std::chrono::steady_clock;

// Ids a copy proposes at most; longer windows win little and hold up neighbours.
constexpr int64_t kMaxCopy = 15;
// A match this long mostly goes on, whatever shorter ones came to.
constexpr int64_t kSureMatch = 24;
constexpr double kSureChance = 0.9;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::string_view StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kMaxTokens:
      return "max_tokens";
    case StopReason::kStopToken:
      return "stop_token";
    case StopReason::kCaller:
      return "caller";
    case StopReason::kContext:
      return "context";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "max_tokens";
}

Stream::Stream(StreamId id, GenerateRequest request, const TargetInfo& info,
               std::span<const int32_t> stop_ids)
    : id_(id),
      request_(std::move(request)),
      info_(&info),
      stop_ids_(stop_ids),
      ids_(request_.prompt),
      copy_gate_(request_.draft.copy_match.value_or(info.copy_match)),
      mark_(Clock::now()) {
  const int64_t size = static_cast<int64_t>(ids_.size());
  if (request_.keep) {
    keep_points_ = request_.keep_at;
    if (size > 1) keep_points_.push_back(size - 1);  // the same prompt again resumes there
    std::sort(keep_points_.begin(), keep_points_.end());
  }
  if (copy_gate_ > 0) {
    for (const int32_t token : ids_) copies_.Append(token);
  }
}

int64_t Stream::max_positions() const {
  const int64_t size = static_cast<int64_t>(request_.prompt.size());
  // Without overflow for a caller who asks for "as many as there are".
  return request_.max_tokens > info_->max_positions - size ? info_->max_positions
                                                           : size + request_.max_tokens;
}

void Stream::Start(std::unique_ptr<TargetState> state) {
  state_ = std::move(state);
  generation_.resumed = state_->position();
  CHECK(generation_.resumed < static_cast<int64_t>(ids_.size()));
  phase_ = StreamPhase::kFilling;
  mark_ = Clock::now();
}

std::span<const int32_t> Stream::NextPiece(int64_t max_rows) const {
  const int64_t fed = state_->position();
  int64_t end = static_cast<int64_t>(request_.prompt.size());
  for (const int64_t point : keep_points_) {
    if (point > fed) end = std::min(end, point);
  }
  if (request_.prompt_chunk > 0) max_rows = std::min(max_rows, request_.prompt_chunk);
  return std::span(ids_).subspan(static_cast<size_t>(fed),
                                 static_cast<size_t>(std::min(end - fed, max_rows)));
}

bool Stream::IsLastPiece(std::span<const int32_t> piece) const {
  return state_->position() + piece.size() == request_.prompt.size();
}

bool Stream::AtKeepPoint() const {
  return std::binary_search(keep_points_.begin(), keep_points_.end(), state_->position());
}

std::span<const int32_t> Stream::Ids(int64_t count) const {
  return std::span(ids_).first(static_cast<size_t>(count));
}

Status Stream::FinishPrompt(std::span<const float> logits) {
  generation_.prompt_seconds = SecondsSince(mark_);
  mark_ = Clock::now();
  phase_ = StreamPhase::kDecoding;
  if (request_.max_tokens == 0) {
    Finish(StopReason::kMaxTokens);
    return {};
  }
  const int32_t token = TRY(Draw(logits, state_->position()));
  Emit(token, logits, state_->position());
  return {};
}

WindowOffer Stream::Offer() {
  guesses_.clear();
  guesses_copied_ = false;
  // What could still be of use: the last id of the reply is never fed, so never guessed from.
  const int64_t drawn = static_cast<int64_t>(generation_.ids.size());
  const int64_t room =
      std::min(request_.max_tokens - drawn - 1, info_->max_positions - state_->position() - 1);
  WindowOffer offer{.fixed = request_.draft.window.value_or(-1)};
  if (room <= 0) return offer;
  if (copy_gate_ > 0) {
    Copy copy = copies_.Find(copy_gate_, std::min(room, kMaxCopy));
    guesses_ = std::move(copy.ids);
    guesses_copied_ = !guesses_.empty();
    offer.chance = std::max(copy_chance_.value(), copy.match >= kSureMatch ? kSureChance : 0.0);
  }
  if (guesses_copied_) {
    offer.guesses = static_cast<int64_t>(guesses_.size());
  } else if (request_.draft.drafter && info_->max_drafts > 0) {
    offer.guesses = std::min(room, info_->max_drafts);
    offer.chance = draft_chance_.value();
    offer.drafted = true;
  }
  return offer;
}

void Stream::SetDrafts(std::vector<int32_t> drafts) { guesses_ = std::move(drafts); }

void Stream::GiveUpDrafter(Error error) {
  guesses_.clear();
  request_.draft.drafter = false;
  generation_.draft_error = std::move(error);
}

std::span<const int32_t> Stream::Window(int64_t guesses) {
  window_start_ = state_->position();
  window_.assign(1, ids_.back());
  const size_t count = std::min(static_cast<size_t>(guesses), guesses_.size());
  window_.insert(window_.end(), guesses_.begin(), guesses_.begin() + static_cast<ptrdiff_t>(count));
  return window_;
}

Result<int64_t> Stream::Accept(std::span<const float> logits, int64_t streams) {
  const size_t vocab = static_cast<size_t>(info_->vocab);
  CHECK(logits.size() == window_.size() * vocab);
  ++generation_.rounds;
  generation_.peak_streams = std::max(generation_.peak_streams, streams);
  generation_.drafted += static_cast<int64_t>(window_.size()) - 1;
  size_t rows = 0;
  while (true) {
    const std::span<const float> row = logits.subspan(rows * vocab, vocab);
    const int64_t position = window_start_ + static_cast<int64_t>(rows) + 1;
    const int32_t token = TRY(Draw(row, position));
    // Counted before it is handed out, so that a caller who stops here sees it counted.
    ++rows;
    const bool landed = rows < window_.size() && window_[rows] == token;
    if (landed) {
      ++generation_.accepted;
      if (guesses_copied_) ++generation_.copied;
    }
    Emit(token, row, position);
    if (phase_ == StreamPhase::kDone || !landed) break;
  }
  const int64_t landed = static_cast<int64_t>(rows) - 1;
  if (guesses_copied_) {
    // A copy's worth shows without verifying it: what was drawn is compared with what it said.
    const size_t known = std::min(rows, guesses_.size());
    size_t right = 0;
    while (right < known && guesses_[right] == ids_[ids_.size() - rows + right]) ++right;
    copy_chance_.Learn(static_cast<int64_t>(right), static_cast<int64_t>(known));
  } else if (window_.size() > 1) {
    draft_chance_.Learn(landed, static_cast<int64_t>(window_.size()) - 1);
  }
  return static_cast<int64_t>(rows);
}

Result<int32_t> Stream::Draw(std::span<const float> logits, int64_t position) const {
  auto drawn = SampleToken(logits.first(static_cast<size_t>(info_->drawable_ids)),
                           request_.sampling, static_cast<uint64_t>(position));
  if (drawn.has_value()) return *drawn;
  Error error = std::move(drawn).error();
  error.where = info_->head_where;
  return hallmark::Fail(std::move(error));
}

void Stream::Emit(int32_t id, std::span<const float> logits, int64_t position) {
  ids_.push_back(id);
  generation_.ids.push_back(id);
  if (copy_gate_ > 0) copies_.Append(id);
  if (request_.on_logits) request_.on_logits(position, logits);
  const bool goes_on = !request_.on_token || request_.on_token(id);
  if (phase_ == StreamPhase::kDone) return;  // the callback cancelled this stream
  if (!goes_on) return Finish(StopReason::kCaller);
  const bool stops = std::find(stop_ids_.begin(), stop_ids_.end(), id) != stop_ids_.end();
  if (stops && !request_.ignore_stop) return Finish(StopReason::kStopToken);
  if (static_cast<int64_t>(generation_.ids.size()) == request_.max_tokens) {
    return Finish(StopReason::kMaxTokens);
  }
  // The id would be fed at `position`, which no model position is left for.
  if (position == info_->max_positions) Finish(StopReason::kContext);
}

void Stream::Finish(StopReason reason) {
  if (phase_ == StreamPhase::kDecoding) generation_.decode_seconds = SecondsSince(mark_);
  if (phase_ == StreamPhase::kFilling) generation_.prompt_seconds = SecondsSince(mark_);
  generation_.stop = reason;
  phase_ = StreamPhase::kDone;
}

void Stream::Fail(Error error) {
  error_ = std::move(error);
  phase_ = StreamPhase::kDone;
}

}  // namespace hallmark
