// SPDX-License-Identifier: Apache-2.0
#include "conformance/lanes/fake_target.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "engine/base/random.h"
#include "engine/base/sha256.h"

namespace hallmark {
namespace {

// Order and length of the whole history decide it.
uint64_t HashOf(std::span<const int32_t> history) {
  uint64_t hash = 0x243F6A8885A308D3ull;
  for (const int32_t id : history) {
    hash = SplitMix64(hash ^ (static_cast<uint64_t>(id) + 0x9E3779B97F4A7C15ull)).Next();
  }
  return SplitMix64(hash + history.size()).Next();
}

// A page counts itself for as long as anybody holds it.
using FakePage = std::shared_ptr<int>;

}  // namespace

struct FakeTarget::State : TargetState {
  explicit State(std::shared_ptr<int64_t> live) : live(std::move(live)) { ++*this->live; }
  ~State() override {
    --*live;
    history.assign(history.size(), -0xDEAD);  // a reader of a freed state shows
  }

  int64_t position() const override { return static_cast<int64_t>(history.size()); }
  size_t bytes() const override { return 100 + 4 * history.size() + 10 * pages.size(); }
  Result<std::string> Digest() const override { return FakeDigest(history); }

  std::shared_ptr<int64_t> live;
  std::vector<int32_t> history;
  std::vector<int32_t> waiting;  // verified, no verdict yet
  std::vector<FakePage> pages;
  bool lost = false;
};

FakeTarget::FakeTarget(const FakeOptions& options) : options_(options) {
  info_ = {.vocab = options.vocab,
           .drawable_ids = options.vocab - 2,
           .max_positions = options.max_positions,
           .max_rows = options.max_rows,
           .max_drafts = options.max_drafts,
           .copy_match = 3,
           .max_pages = options.max_pages,
           .page_positions = options.page_ids};
}

FakeTarget::~FakeTarget() = default;

std::vector<float> FakeTarget::LogitsAfter(std::span<const int32_t> history) const {
  std::vector<float> logits(static_cast<size_t>(options_.vocab));
  SplitMix64 random(HashOf(history));
  // Coarse values, so that ties occur.
  for (float& logit : logits) logit = static_cast<float>(random.Below(24)) * 0.25f - 3.0f;
  for (size_t i = history.size(); options_.echoes && i >= 2; --i) {
    if (history[i - 2] != history.back()) continue;
    logits[static_cast<size_t>(history[i - 1])] += 3.0f;
    break;
  }
  if (!history.empty() && history.back() == options_.logits_breaker) {
    logits[random.Below(static_cast<uint64_t>(info_.drawable_ids))] =
        std::numeric_limits<float>::quiet_NaN();
  }
  return logits;
}

Result<std::unique_ptr<TargetState>> FakeTarget::Create() {
  return std::unique_ptr<TargetState>(std::make_unique<State>(live_states_));
}

Result<std::unique_ptr<TargetState>> FakeTarget::Fork(const TargetState& state) {
  const State& from = static_cast<const State&>(state);
  if (from.lost) Complain("a lost state was forked");
  auto fork = std::make_unique<State>(live_states_);
  fork->history = from.history;
  const size_t used = (from.history.size() + options_.page_ids - 1) / options_.page_ids;
  fork->pages.assign(from.pages.begin(), from.pages.begin() + static_cast<ptrdiff_t>(used));
  return std::unique_ptr<TargetState>(std::move(fork));
}

Status FakeTarget::TakePages(State& state, int64_t ids) {
  const size_t first = state.history.size() / static_cast<size_t>(options_.page_ids);
  const size_t end = (state.history.size() + static_cast<size_t>(ids) + options_.page_ids - 1) /
                     static_cast<size_t>(options_.page_ids);
  for (size_t i = first; i < end; ++i) {
    const auto writable = [&] { return i < state.pages.size() && state.pages[i].use_count() == 1; };
    const auto full = [&] { return options_.max_pages > 0 && *pages_held_ >= options_.max_pages; };
    while (!writable() && full() && reclaim_ && reclaim_()) {
    }
    if (writable()) continue;
    if (full()) {
      Complain("pages ran out under an admitted stream");
      return Fail(Code::kResource, "no page left");
    }
    ++*pages_held_;
    FakePage page(new int(0), [held = pages_held_](int* gone) {
      --*held;
      delete gone;
    });
    if (i == state.pages.size()) state.pages.emplace_back();
    state.pages[i] = std::move(page);
  }
  return {};
}

Result<std::vector<std::vector<float>>> FakeTarget::Run(std::span<const TargetSlice> slices) {
  int64_t rows = 0;
  std::set<const TargetState*> seen;
  for (const TargetSlice& slice : slices) {
    State& state = static_cast<State&>(*slice.state);
    if (!seen.insert(slice.state).second) Complain("a state stood twice in one call");
    if (state.lost) Complain("a lost state was run");
    if (slice.ids.empty()) Complain("a slice without ids");
    state.waiting.clear();
    rows += static_cast<int64_t>(slice.ids.size());
    if (state.position() + static_cast<int64_t>(slice.ids.size()) > info_.max_positions) {
      Complain("fed past the last position");
    }
  }
  if (rows > info_.max_rows) Complain("more rows than a call takes");
  widest_call_ = std::max(widest_call_, static_cast<int64_t>(slices.size()));
  for (const TargetSlice& slice : slices) {
    TRY(TakePages(static_cast<State&>(*slice.state), static_cast<int64_t>(slice.ids.size())));
  }
  for (const TargetSlice& slice : slices) {
    if (std::find(slice.ids.begin(), slice.ids.end(), options_.call_breaker) == slice.ids.end()) {
      continue;
    }
    for (const TargetSlice& other : slices) {
      if (!other.verify) static_cast<State&>(*other.state).lost = true;
    }
    return Fail(Code::kOutOfRange, "an id that breaks calls was fed");
  }
  std::vector<std::vector<float>> logits;
  for (const TargetSlice& slice : slices) {
    State& state = static_cast<State&>(*slice.state);
    std::vector<int32_t> history = state.history;
    std::vector<float>& out = logits.emplace_back();
    for (size_t i = 0; i < slice.ids.size(); ++i) {
      history.push_back(slice.ids[i]);
      const bool wanted = slice.logits == LogitRows::kAll ||
                          (slice.logits == LogitRows::kLast && i + 1 == slice.ids.size());
      if (!wanted) continue;
      const std::vector<float> row = LogitsAfter(history);
      out.insert(out.end(), row.begin(), row.end());
    }
    if (slice.verify) {
      state.waiting.assign(slice.ids.begin(), slice.ids.end());
    } else {
      state.history = std::move(history);
    }
  }
  return logits;
}

Status FakeTarget::Commit(TargetState& target_state, int64_t rows) {
  State& state = static_cast<State&>(target_state);
  if (rows < 0 || rows > static_cast<int64_t>(state.waiting.size())) {
    Complain("a commit of " + std::to_string(rows) + " rows, " +
             std::to_string(state.waiting.size()) + " wait");
    return Fail(Code::kInternal, "no such rows");
  }
  state.history.insert(state.history.end(), state.waiting.begin(),
                       state.waiting.begin() + static_cast<ptrdiff_t>(rows));
  state.waiting.clear();
  return {};
}

Result<std::vector<std::vector<int32_t>>> FakeTarget::Draft(std::span<const DraftAsk> asks) {
  std::vector<std::vector<int32_t>> drafts;
  for (const DraftAsk& ask : asks) {
    if (ask.anchor == options_.draft_breaker) {
      return Fail(Code::kOutOfRange, "an id that breaks drafts was drafted from");
    }
    State& state = static_cast<State&>(*ask.state);
    std::vector<int32_t> history = state.history;
    history.push_back(ask.anchor);
    SplitMix64 random(HashOf(history) ^ 0xD1AF7);
    const uint64_t right = random.Below(static_cast<uint64_t>(options_.max_drafts) + 1);
    const uint64_t count = random.Below(static_cast<uint64_t>(options_.max_drafts) + 1);
    std::vector<int32_t>& draft = drafts.emplace_back();
    for (uint64_t i = 0; i < count; ++i) {
      const std::vector<float> logits = LogitsAfter(history);
      const auto truth =
          SampleToken(std::span(logits).first(static_cast<size_t>(info_.drawable_ids)),
                      ask.sampling, history.size());
      int32_t id = truth.value_or(0);
      if (i >= right) id = static_cast<int32_t>((id + 1) % info_.drawable_ids);
      draft.push_back(id);
      history.push_back(id);
    }
  }
  return drafts;
}

Result<Generation> SerialReply(const FakeTarget& target, const GenerateRequest& request,
                               std::span<const int32_t> stop_ids) {
  const FakeOptions& options = target.options();
  const TargetInfo& info = target.info();
  std::vector<int32_t> history = request.prompt;
  Generation reply;
  const auto fed = [&](int32_t id) -> Status {
    if (id == options.call_breaker) return Fail(Code::kOutOfRange, "breaks the call");
    return {};
  };
  for (const int32_t id : history) TRY(fed(id));
  while (request.max_tokens > 0) {
    const std::vector<float> logits = target.LogitsAfter(history);
    const int32_t id =
        TRY(SampleToken(std::span(logits).first(static_cast<size_t>(info.drawable_ids)),
                        request.sampling, history.size()));
    reply.ids.push_back(id);
    const bool stops = std::find(stop_ids.begin(), stop_ids.end(), id) != stop_ids.end();
    if (request.on_token && !request.on_token(id)) {
      reply.stop = StopReason::kCaller;
      break;
    }
    if (stops && !request.ignore_stop) {
      reply.stop = StopReason::kStopToken;
      break;
    }
    if (static_cast<int64_t>(reply.ids.size()) == request.max_tokens) break;
    if (static_cast<int64_t>(history.size()) == info.max_positions) {
      reply.stop = StopReason::kContext;
      break;
    }
    TRY(fed(id));
    history.push_back(id);
  }
  reply.state_digest = FakeDigest(history);
  return reply;
}

std::string FakeDigest(std::span<const int32_t> history) { return Sha256HexOf(history); }

}  // namespace hallmark
