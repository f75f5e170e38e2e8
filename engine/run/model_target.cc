// SPDX-License-Identifier: Apache-2.0
#include "engine/run/model_target.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace hallmark {
namespace {

// Short copies preempt the drafter of this model too often; see DraftPolicy::copy_match.
constexpr int64_t kLongCopyMatch = 20;
// Rows of a window without a drafter: a copy and the id before it.
constexpr int64_t kUsualWindow = 16;

bool DraftsBeyondShortCopies(const ModelConfig& config) {
  return config.hidden == 5120 && config.layers.size() == 64;
}

}  // namespace

struct ModelTarget::State : TargetState {
  explicit State(Sequence sequence) : sequence(std::move(sequence)) {}

  int64_t position() const override { return sequence.position(); }
  size_t bytes() const override { return sequence.bytes() + (context ? context->bytes() : 0); }
  Result<std::string> Digest() const override { return sequence.StateDigest(); }
  void DropWindow() override {
    window.reset();
    tap_row = -1;
  }

  Sequence sequence;
  std::optional<DraftContext> context;
  // Why there is no context though there is a drafter: its stream goes on undrafted.
  std::optional<Error> context_error;
  std::optional<VerifyWindow> window;
  int64_t tap_row = -1;  // of this state's first row in the last pass's taps; -1: none waits
};

Result<std::unique_ptr<ModelTarget>> ModelTarget::Create(const Model& model, const Drafter* drafter,
                                                         const KvPoolOptions& pages,
                                                         TargetInfo info) {
  std::unique_ptr<ModelTarget> target(new ModelTarget(model, drafter));
  std::vector<int> taps;
  if (drafter != nullptr) taps = drafter->taps();
  target->pass_ = TRY(ForwardPass::Create(model, ForwardPass::kMaxRows, taps));
  if (drafter != nullptr) target->draft_pass_ = TRY(DraftPass::Create(*drafter));
  target->pool_ = std::make_shared<KvPool>(*model.backend, model.config, pages);
  info.vocab = model.config.vocab;
  info.max_positions = model.config.max_positions;
  info.max_rows = target->pass_->max_rows();
  info.max_drafts = drafter == nullptr ? 0 : drafter->block_size() - 1;
  info.max_pages = pages.max_pages;
  if (DraftsBeyondShortCopies(model.config)) info.copy_match = kLongCopyMatch;
  target->info_ = std::move(info);
  return target;
}

Result<std::unique_ptr<TargetState>> ModelTarget::Create() {
  auto state = std::make_unique<State>(TRY(Sequence::Create(pool_, model_->config)));
  if (drafter_ != nullptr) state->context = TRY(DraftContext::Create(*drafter_));
  return std::unique_ptr<TargetState>(std::move(state));
}

Result<std::unique_ptr<TargetState>> ModelTarget::Fork(const TargetState& state) {
  const State& from = static_cast<const State&>(state);
  auto fork = std::make_unique<State>(TRY(from.sequence.Fork()));
  if (from.context) fork->context = TRY(from.context->Fork());
  fork->context_error = from.context_error;
  return std::unique_ptr<TargetState>(std::move(fork));
}

Result<std::vector<std::vector<float>>> ModelTarget::Run(std::span<const TargetSlice> slices) {
  std::vector<PassSlice> parts;
  for (const TargetSlice& slice : slices) {
    State& state = static_cast<State&>(*slice.state);
    PassSlice part{.sequence = &state.sequence, .ids = slice.ids, .logits = slice.logits};
    if (slice.verify) {
      const int64_t rows = static_cast<int64_t>(slice.ids.size());
      if (!state.window || state.window->max_rows() < rows) {
        // Room for the widest window this stream can come to, so that it is made once.
        const int64_t widest = std::max({rows, info_.max_drafts + 1, kUsualWindow});
        state.window = TRY(VerifyWindow::Create(*model_, std::min(widest, info_.max_rows)));
      }
      part.window = &*state.window;
    }
    parts.push_back(part);
  }
  auto logits = TRY(pass_->RunSlices(parts));
  int64_t row = 0;
  for (const TargetSlice& slice : slices) {
    State& state = static_cast<State&>(*slice.state);
    const int64_t count = static_cast<int64_t>(slice.ids.size());
    if (slice.verify) {
      state.tap_row = row;
    } else {
      AppendTaps(state, row, count);
    }
    row += count;
  }
  return logits;
}

// The drafter's context moves with the sequence: the taps of every row that joins, once.
void ModelTarget::AppendTaps(State& state, int64_t first_row, int64_t rows) {
  if (!state.context) return;
  const ConstRows taps = pass_->taps();
  const Status appended =
      draft_pass_->Append(*state.context, {taps.data + first_row * taps.cols, rows, taps.cols});
  if (appended.has_value()) return;
  state.context.reset();
  state.context_error = appended.error();
}

Status ModelTarget::Commit(TargetState& target_state, int64_t rows) {
  State& state = static_cast<State&>(target_state);
  CHECK(state.tap_row >= 0);
  const int64_t first_row = std::exchange(state.tap_row, -1);
  TRY(pass_->Commit(state.sequence, *state.window, rows));
  if (rows > 0) AppendTaps(state, first_row, rows);
  return {};
}

Result<std::vector<std::vector<int32_t>>> ModelTarget::Draft(std::span<const DraftAsk> asks) {
  CHECK(draft_pass_.has_value());
  std::vector<DraftRequest> requests;
  for (const DraftAsk& ask : asks) {
    State& state = static_cast<State&>(*ask.state);
    if (!state.context) return hallmark::Fail(*state.context_error);
    DraftRequest request{.context = &*state.context, .anchor = ask.anchor};
    if (ask.sampling.temperature > 0) {
      // The noise of the draw is known ahead, so the guess takes it into account.
      request.temperature = ask.sampling.temperature;
      request.noise = [seed = ask.sampling.seed](int64_t position, int32_t token) {
        return SamplerNoise(seed, static_cast<uint64_t>(position), static_cast<uint64_t>(token));
      };
    }
    requests.push_back(std::move(request));
  }
  std::vector<DraftProposal> proposals = TRY(draft_pass_->Propose(requests));
  std::vector<std::vector<int32_t>> ids;
  for (DraftProposal& proposal : proposals) ids.push_back(std::move(proposal.ids));
  return ids;
}

}  // namespace hallmark
