// SPDX-License-Identifier: Apache-2.0
#include "engine/run/scheduler.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "engine/base/check.h"

namespace hallmark {
namespace {

double SteadySeconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

Result<std::unique_ptr<Scheduler>> Scheduler::Create(Target& target,
                                                     std::span<const int32_t> stop_ids,
                                                     const SchedulerOptions& options) {
  if (options.max_streams < 1 || options.max_streams > kMaxStreams) {
    return Fail(Code::kOutOfRange,
                "found " + std::to_string(options.max_streams) + " streams, expected 1 to " +
                    std::to_string(kMaxStreams),
                {.flag = "--streams"});
  }
  CHECK(target.info().max_rows >= kMaxStreams);
  return std::unique_ptr<Scheduler>(new Scheduler(target, stop_ids, options));
}

Scheduler::Scheduler(Target& target, std::span<const int32_t> stop_ids,
                     const SchedulerOptions& options)
    : target_(target), stop_ids_(stop_ids), options_(options), kept_(options.kept_bytes) {
  if (!options_.clock) options_.clock = &SteadySeconds;
}

Status Scheduler::Check(const GenerateRequest& request) const {
  const TargetInfo& info = target_.info();
  TRY(CheckSamplingParams(request.sampling));
  const int64_t size = static_cast<int64_t>(request.prompt.size());
  if (size == 0) return Fail(Code::kOutOfRange, "the prompt has no tokens");
  if (request.max_tokens < 0) {
    return Fail(Code::kOutOfRange, "expected 0 or more tokens", {.flag = "--max-tokens"});
  }
  if (request.prompt_chunk < 0) {
    return Fail(Code::kOutOfRange, "expected a chunk of 0 (all) or more rows");
  }
  if (size > info.max_positions) {
    return Fail(Code::kOutOfRange,
                std::to_string(size) + " tokens, the model's max_position_embeddings is " +
                    std::to_string(info.max_positions),
                info.positions_where);
  }
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    if (request.prompt[i] >= 0 && request.prompt[i] < info.vocab) continue;
    return Fail(Code::kOutOfRange, "token id " + std::to_string(request.prompt[i]) + " at index " +
                                       std::to_string(i) + " is outside the vocabulary of " +
                                       std::to_string(info.vocab));
  }
  for (const int64_t point : request.keep_at) {
    if (point >= 1 && point <= size) continue;
    return Fail(Code::kOutOfRange, "a state to keep after " + std::to_string(point) +
                                       " prompt ids, expected 1 to " + std::to_string(size));
  }
  const int64_t gate = request.draft.copy_match.value_or(0);
  if (gate < 0 || gate > CopyIndex::kLongestMatch) {
    return Fail(Code::kOutOfRange,
                "expected 0 (no copies) to " + std::to_string(CopyIndex::kLongestMatch) + " ids",
                {.flag = "--copy-match"});
  }
  if (request.draft.window.value_or(0) < 0) {
    return Fail(Code::kOutOfRange, "expected 0 or more drafts a round", {.flag = "--window"});
  }
  return {};
}

int64_t Scheduler::Pages(const Stream& stream) const {
  const int64_t page = target_.info().page_positions;
  return (stream.max_positions() + page - 1) / page;
}

Result<StreamId> Scheduler::Submit(GenerateRequest request) {
  TRY(Check(request));
  auto stream = std::make_shared<Stream>(next_id_, std::move(request), target_.info(), stop_ids_);
  const int64_t limit = target_.info().max_pages;
  if (limit > 0 && Pages(*stream) > limit) {
    return Fail(Code::kResource,
                "prompt and reply can come to " + std::to_string(stream->max_positions()) +
                    " positions, the context planned for has " +
                    std::to_string(limit * target_.info().page_positions),
                {.flag = "--context"});
  }
  queued_.push_back(std::move(stream));
  return next_id_++;
}

Result<bool> Scheduler::Round() {
  if (in_round_) {
    return Fail(Code::kUnsupported, "a round was asked for inside a callback of another round");
  }
  in_round_ = true;
  // For this round only: other schedulers may share the target.
  target_.set_reclaim([this] { return kept_.EvictOne(); });
  Admit();
  FeedOnePrompt();
  Decode();
  Settle();
  target_.set_reclaim({});
  in_round_ = false;
  return active() > 0;
}

void Scheduler::Admit() {
  while (!queued_.empty() && static_cast<int>(running_.size()) < options_.max_streams) {
    const StreamPtr stream = queued_.front();
    const int64_t limit = target_.info().max_pages;
    int64_t promised = Pages(*stream);
    for (const StreamPtr& other : running_) promised += Pages(*other);
    // Kept states give way when pages run out, streams don't: so the promises alone must fit.
    if (limit > 0 && promised > limit) return;  // first in, first out: nobody overtakes
    queued_.pop_front();
    running_.push_back(stream);
    if (Status begun = Begin(*stream); !begun.has_value()) stream->Fail(begun.error());
  }
}

Status Scheduler::Begin(Stream& stream) {
  while (true) {
    const TargetState* kept = nullptr;
    if (stream.request().resume) kept = kept_.Find(stream.request().prompt);
    auto state = kept == nullptr ? target_.Create() : target_.Fork(*kept);
    if (state.has_value()) {
      stream.Start(std::move(*state));
      return {};
    }
    // Kept states give way when memory runs out, the one that was found here last of all.
    if (state.error().code != Code::kResource || !kept_.EvictOne()) {
      return Fail(std::move(state).error());
    }
  }
}

void Scheduler::FeedOnePrompt() {
  const auto filling = std::find_if(running_.begin(), running_.end(), [](const StreamPtr& stream) {
    return stream->phase() == StreamPhase::kFilling;
  });
  if (filling == running_.end()) return;
  const StreamPtr stream = *filling;
  if (Status fed = FeedPiece(*stream); !fed.has_value()) stream->Fail(fed.error());
}

// Alone in its pass, so that an error in it can reach no neighbour. Streams that decode wait for
// it: with one of them the piece is short.
Status Scheduler::FeedPiece(Stream& stream) {
  const bool others = std::any_of(running_.begin(), running_.end(), [](const StreamPtr& other) {
    return other->phase() == StreamPhase::kDecoding;
  });
  const int64_t most = target_.info().max_rows;
  const std::span<const int32_t> piece =
      stream.NextPiece(others ? std::min(most, kRoundRows) : most);
  const bool last = stream.IsLastPiece(piece);
  const TargetSlice slice{
      .state = &stream.state(), .ids = piece, .logits = last ? LogitRows::kLast : LogitRows::kNone};
  const auto logits = TRY(target_.Run({&slice, 1}));
  if (stream.AtKeepPoint()) Keep(stream);
  if (last) TRY(stream.FinishPrompt(logits[0]));
  return {};
}

void Scheduler::Keep(Stream& stream) {
  if (kept_.max_bytes() == 0) return;
  // No memory for a copy: then nothing is kept, and the stream goes on.
  auto copy = target_.Fork(stream.state());
  if (!copy.has_value()) return;
  const std::span<const int32_t> ids = stream.Ids(stream.state().position());
  kept_.Keep({ids.begin(), ids.end()}, std::move(*copy));
}

void Scheduler::Decode() {
  std::vector<StreamPtr> streams;
  std::vector<WindowOffer> offers;
  int64_t before = 0;
  for (const StreamPtr& stream : running_) {
    if (stream->phase() != StreamPhase::kDecoding) continue;
    streams.push_back(stream);
    offers.push_back(stream->Offer());
    before += static_cast<int64_t>(stream->generation().ids.size());
  }
  if (streams.empty()) return;
  const double start = options_.clock();
  const std::vector<int64_t> plan =
      planner_.Plan(offers, std::min(target_.info().max_rows, kRoundRows));
  const bool drafted = MakeDrafts(streams, offers, plan);
  std::vector<Window> windows;
  for (size_t i = 0; i < streams.size(); ++i) windows.push_back(streams[i]->Window(plan[i]));
  RunWindows(streams, windows);
  int64_t tokens = -before;
  for (const StreamPtr& stream : streams) {
    tokens += static_cast<int64_t>(stream->generation().ids.size());
  }
  planner_.LearnRound(options_.clock() - start, tokens, static_cast<int64_t>(streams.size()),
                      drafted);
}

bool Scheduler::MakeDrafts(std::span<const StreamPtr> streams, std::span<const WindowOffer> offers,
                           std::span<const int64_t> plan) {
  std::vector<DraftAsk> asks;
  std::vector<StreamPtr> askers;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (!offers[i].drafted || plan[i] == 0) continue;
    asks.push_back({.state = &streams[i]->state(),
                    .anchor = streams[i]->Window(0)[0],
                    .sampling = streams[i]->request().sampling});
    askers.push_back(streams[i]);
  }
  if (asks.empty()) return false;
  const double start = options_.clock();
  if (auto drafts = target_.Draft(asks); drafts.has_value()) {
    planner_.LearnDraft(options_.clock() - start);
    for (size_t i = 0; i < askers.size(); ++i) askers[i]->SetDrafts(std::move((*drafts)[i]));
    return true;
  }
  for (size_t i = 0; i < askers.size(); ++i) {
    auto alone = target_.Draft(std::span(asks).subspan(i, 1));
    if (alone.has_value()) {
      askers[i]->SetDrafts(std::move((*alone)[0]));
    } else {
      askers[i]->GiveUpDrafter(std::move(alone).error());
    }
  }
  return true;
}

void Scheduler::RunWindows(std::span<const StreamPtr> streams, std::span<const Window> windows) {
  // A lone row needs no verdict: it joins at once, which saves its replay.
  const bool verify = streams.size() > 1 || windows[0].size() > 1;
  std::vector<TargetSlice> slices;
  int64_t rows = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    slices.push_back({.state = &streams[i]->state(),
                      .ids = windows[i],
                      .logits = LogitRows::kAll,
                      .verify = verify});
    rows += static_cast<int64_t>(windows[i].size());
  }
  const double start = options_.clock();
  const auto logits = target_.Run(slices);
  if (!logits.has_value()) {
    if (streams.size() == 1 && windows[0].size() == 1) return streams[0]->Fail(logits.error());
    // Some row cannot be run. No state has moved: each stream alone, and then without its guesses,
    // since a guess may be wrong. Only a stream whose own id is at fault ends.
    if (streams.size() == 1) {
      const Window bare = streams[0]->Window(0);
      return RunWindows(streams, {&bare, 1});
    }
    for (size_t i = 0; i < streams.size(); ++i) {
      // The callback of one that went before may have cancelled it.
      if (streams[i]->phase() == StreamPhase::kDone) continue;
      RunWindows(streams.subspan(i, 1), windows.subspan(i, 1));
    }
    return;
  }
  planner_.LearnPass(rows, options_.clock() - start);
  for (size_t i = 0; i < streams.size(); ++i) {
    if (streams[i]->phase() == StreamPhase::kDone) continue;  // cancelled in a neighbour's callback
    const Status accepted =
        AcceptWindow(*streams[i], (*logits)[i], verify, static_cast<int64_t>(streams.size()));
    if (!accepted.has_value()) streams[i]->Fail(accepted.error());
  }
}

Status Scheduler::AcceptWindow(Stream& stream, std::span<const float> logits, bool verified,
                               int64_t streams) {
  const int64_t rows = TRY(stream.Accept(logits, streams));
  if (verified) TRY(target_.Commit(stream.state(), rows));
  return {};
}

void Scheduler::Settle() {
  for (const StreamPtr& stream : running_) {
    if (stream->phase() == StreamPhase::kDone) Close(*stream);
  }
  const auto first_done = std::stable_partition(
      running_.begin(), running_.end(),
      [](const StreamPtr& stream) { return stream->phase() != StreamPhase::kDone; });
  done_.insert(done_.end(), first_done, running_.end());
  running_.erase(first_done, running_.end());
}

// Looks at the state a last time, keeps it for prompts that go on from here, and lets it go.
void Scheduler::Close(Stream& stream) {
  std::unique_ptr<TargetState> state = stream.TakeState();
  if (state == nullptr || stream.error()) return;
  if (stream.request().digest) {
    auto digest = state->Digest();
    if (!digest.has_value()) return stream.Fail(digest.error());
    stream.generation().state_digest = *digest;
  }
  if (!stream.request().keep || kept_.max_bytes() == 0 || state->position() == 0) return;
  state->DropWindow();
  const std::span<const int32_t> ids = stream.Ids(state->position());
  kept_.Keep({ids.begin(), ids.end()}, std::move(state));
}

bool Scheduler::Cancel(StreamId id) {
  const auto same = [id](const StreamPtr& stream) { return stream->id() == id; };
  if (const auto found = std::find_if(queued_.begin(), queued_.end(), same);
      found != queued_.end()) {
    (*found)->Finish(StopReason::kCancelled);
    done_.push_back(*found);
    queued_.erase(found);
    return true;
  }
  const auto found = std::find_if(running_.begin(), running_.end(), same);
  if (found == running_.end() || (*found)->phase() == StreamPhase::kDone) return false;
  (*found)->Finish(StopReason::kCancelled);
  if (!in_round_) Settle();  // a round settles at its end
  return true;
}

bool Scheduler::IsDone(StreamId id) const {
  return std::any_of(done_.begin(), done_.end(),
                     [id](const StreamPtr& stream) { return stream->id() == id; });
}

Result<Generation> Scheduler::Take(StreamId id) {
  const auto found = std::find_if(done_.begin(), done_.end(),
                                  [id](const StreamPtr& stream) { return stream->id() == id; });
  if (found == done_.end()) {
    return Fail(Code::kNotFound, "no finished stream " + std::to_string(id));
  }
  const StreamPtr stream = *found;
  done_.erase(found);
  if (stream->error()) return Fail(*stream->error());
  return std::move(stream->generation());
}

}  // namespace hallmark
