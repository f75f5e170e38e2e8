// SPDX-License-Identifier: Apache-2.0
// WrappedTarget: hands every call on to a real target. ReplayTarget and ScriptedTarget change one
// thing each, so that receipts do not depend on what a model or its drafter is worth.
#ifndef HALLMARK_CONFORMANCE_CASES_WRAPPED_TARGET_H_
#define HALLMARK_CONFORMANCE_CASES_WRAPPED_TARGET_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/run/target.h"

namespace hallmark {

class WrappedTarget : public Target {
 public:
  explicit WrappedTarget(Target& real) : info_(real.info()), real_(real) {}

  const TargetInfo& info() const override { return info_; }
  Result<std::unique_ptr<TargetState>> Create() override { return real_.Create(); }
  Result<std::unique_ptr<TargetState>> Fork(const TargetState& state) override {
    return real_.Fork(state);
  }
  Result<std::vector<std::vector<float>>> Run(std::span<const TargetSlice> slices) override {
    return real_.Run(slices);
  }
  Status Commit(TargetState& state, int64_t rows) override { return real_.Commit(state, rows); }
  Result<std::vector<std::vector<int32_t>>> Draft(std::span<const DraftAsk> asks) override {
    return real_.Draft(asks);
  }
  void set_reclaim(std::function<bool()> reclaim) override {
    real_.set_reclaim(std::move(reclaim));
  }
  int64_t pages_held() const override { return real_.pages_held(); }

 protected:
  TargetInfo info_;

 private:
  Target& real_;
};

// Drafts are a recorded text, right for exactly 0, 1, 2, ... ids in turn and wrong after, so that a
// real engine goes through every length a window can be accepted to.
class ReplayTarget : public WrappedTarget {
 public:
  // Proposes `drafts` ids a round. `text` is what the stream comes to hold: prompt, then reply.
  ReplayTarget(Target& real, std::vector<int32_t> text, int64_t drafts)
      : WrappedTarget(real), text_(std::move(text)), drafts_(drafts) {
    info_.max_drafts = drafts;
  }

  Result<std::vector<std::vector<int32_t>>> Draft(std::span<const DraftAsk> asks) override {
    std::vector<std::vector<int32_t>> drafts;
    for (const DraftAsk& ask : asks) {
      const int64_t right = turn_++ % (drafts_ + 1);
      std::vector<int32_t>& draft = drafts.emplace_back();
      for (int64_t i = 0; i < drafts_; ++i) {
        // The anchor stands at position(), so the first guess stands after it.
        const size_t place = static_cast<size_t>(ask.state->position() + 1 + i);
        const int32_t truth = place < text_.size() ? text_[place] : 0;
        draft.push_back(i < right ? truth : static_cast<int32_t>((truth + 1) % info_.drawable_ids));
      }
    }
    return drafts;
  }

 private:
  std::vector<int32_t> text_;
  int64_t drafts_;
  int64_t turn_ = 0;
};

// Draws follow a script, whatever the model would say: in every row of logits the script's id is
// raised above all others. States, and the other logits, are the model's own.
class ScriptedTarget : public WrappedTarget {
 public:
  // script[p] is drawn for position p; past its end the model is free.
  ScriptedTarget(Target& real, std::vector<int32_t> script)
      : WrappedTarget(real), script_(std::move(script)) {}

  Result<std::vector<std::vector<float>>> Run(std::span<const TargetSlice> slices) override {
    std::vector<int64_t> first;  // position of each slice's first row of logits
    for (const TargetSlice& slice : slices) {
      const int64_t last = static_cast<int64_t>(slice.ids.size()) - 1;
      first.push_back(slice.state->position() + (slice.logits == LogitRows::kAll ? 0 : last));
    }
    auto logits = TRY(WrappedTarget::Run(slices));
    const size_t vocab = static_cast<size_t>(info_.vocab);
    for (size_t i = 0; i < slices.size(); ++i) {
      for (size_t row = 0; row * vocab < logits[i].size(); ++row) {
        const size_t place = static_cast<size_t>(first[i]) + row + 1;
        if (place >= script_.size()) continue;
        const auto begin = logits[i].begin() + static_cast<ptrdiff_t>(row * vocab);
        const float highest = *std::max_element(begin, begin + static_cast<ptrdiff_t>(vocab));
        begin[script_[place]] = highest + kLift;
      }
    }
    return logits;
  }

 private:
  static constexpr float kLift = 1000.0f;  // no noise of the sampler reaches so far

  std::vector<int32_t> script_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_WRAPPED_TARGET_H_
