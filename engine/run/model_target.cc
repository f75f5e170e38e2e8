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
  size_t bytes() const override { return sequence.bytes(); }
  Result<std::string> Digest() const override { return sequence.StateDigest(); }

  Sequence sequence;
  std::optional<VerifyWindow> window;
  int64_t tap_row = -1;  // of this state's first row in the last pass's taps; -1: none waits
};

Result<std::unique_ptr<ModelTarget>> ModelTarget::Create(const Model& model,
                                                         const KvPoolOptions& pages,
                                                         TargetInfo info) {
  std::unique_ptr<ModelTarget> target(new ModelTarget(model));
  target->pass_ = TRY(ForwardPass::Create(model));
  target->pool_ = std::make_shared<KvPool>(*model.backend, model.config, pages);
  info.vocab = model.config.vocab;
  info.max_positions = model.config.max_positions;
  info.max_rows = target->pass_->max_rows();
  info.max_drafts = 0;
  info.max_pages = pages.max_pages;
  if (DraftsBeyondShortCopies(model.config)) info.copy_match = kLongCopyMatch;
  target->info_ = std::move(info);
  return target;
}

Result<std::unique_ptr<TargetState>> ModelTarget::Create() {
  auto state = std::make_unique<State>(TRY(Sequence::Create(pool_, model_->config)));
  return std::unique_ptr<TargetState>(std::move(state));
}

Result<std::unique_ptr<TargetState>> ModelTarget::Fork(const TargetState& state) {
  const State& from = static_cast<const State&>(state);
  auto fork = std::make_unique<State>(TRY(from.sequence.Fork()));
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
    }
    row += count;
  }
  return logits;
}

Status ModelTarget::Commit(TargetState& target_state, int64_t rows) {
  State& state = static_cast<State&>(target_state);
  CHECK(state.tap_row >= 0);
  state.tap_row = -1;
  return pass_->Commit(state.sequence, *state.window, rows);
}

Result<std::vector<std::vector<int32_t>>> ModelTarget::Draft(std::span<const DraftAsk>) {
  return hallmark::Fail(Code::kInternal, "no drafter");
}

}  // namespace hallmark
