// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/windows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace hallmark {
namespace {

struct Place {
  int64_t position;  // ids before the window
  int64_t rows;
};
// Tiles end at 64, pages at 256, chunks at 512.
constexpr Place kPlaces[] = {{5, 1}, {9, 8}, {56, 16}, {63, 2}, {250, 17}, {509, 8}};

struct Steps {
  std::vector<std::vector<float>> logits;       // after each of the window's ids
  std::vector<std::string> states;              // after 0, 1, ... ids
  std::vector<std::vector<int32_t>> proposals;  // alike, after the same anchor; empty: no drafter
};

class WindowRun {
 public:
  WindowRun(Target& target, Place place) : target_(target), place_(place) {
    const std::vector<int32_t> ids =
        LaneIds(target.info().drawable_ids, "windows", place.position + place.rows);
    prompt_.assign(ids.begin(), ids.begin() + place.position);
    window_.assign(ids.begin() + place.position, ids.end());
  }

  Status Prepare() {
    base_ = TRY(target_.Create());
    for (size_t done = 0; done < prompt_.size();) {
      const size_t rows =
          std::min(prompt_.size() - done, static_cast<size_t>(target_.info().max_rows));
      const TargetSlice piece{.state = base_.get(),
                              .ids = std::span(prompt_).subspan(done, rows),
                              .logits = LogitRows::kNone};
      TRY(target_.Run({&piece, 1}));
      done += rows;
    }
    auto state = TRY(target_.Fork(*base_));
    TRY(Note(*state));
    for (const int32_t& id : window_) {
      const TargetSlice step{.state = state.get(), .ids = {&id, 1}};
      steps_.logits.push_back(std::move(TRY(target_.Run({&step, 1}))[0]));
      TRY(Note(*state));
    }
    return {};
  }

  Result<Row> Verify() {
    TRY(Prepare());
    BitsRow row;
    auto state = TRY(target_.Fork(*base_));
    const std::vector<float> logits = TRY(Window(*state));
    const size_t vocab = static_cast<size_t>(target_.info().vocab);
    for (size_t i = 0; i < window_.size(); ++i) {
      row.Compare<float>(steps_.logits[i], std::span(logits).subspan(i * vocab, vocab),
                         "the logits of row " + std::to_string(i));
    }
    row.CompareText(steps_.states[0], TRY(state->Digest()), "the state before a commit");
    row.Count("rows", window_.size());
    return row.Finish();
  }

  Result<Row> Commit() {
    TRY(Prepare());
    BitsRow row;
    for (size_t rows = 0; rows <= window_.size(); ++rows) {
      const std::string where = "after " + std::to_string(rows) + " rows";
      auto state = TRY(target_.Fork(*base_));
      TRY(Window(*state));
      TRY(target_.Commit(*state, static_cast<int64_t>(rows)));
      row.CompareText(steps_.states[rows], TRY(state->Digest()), where + ": the state");
      if (target_.info().max_drafts > 0) {
        row.Compare<int32_t>(steps_.proposals[rows], TRY(Propose(*state)),
                             where + ": the drafter's proposal");
      }
      row.Count("commits", 1);
    }
    return row.Finish();
  }

 private:
  Result<std::vector<float>> Window(TargetState& state) {
    const TargetSlice slice{
        .state = &state, .ids = window_, .logits = LogitRows::kAll, .verify = true};
    return std::move(TRY(target_.Run({&slice, 1}))[0]);
  }
  Result<std::vector<int32_t>> Propose(TargetState& state) {
    const DraftAsk ask{.state = &state, .anchor = prompt_[0]};
    return std::move(TRY(target_.Draft({&ask, 1}))[0]);
  }
  Status Note(TargetState& state) {
    steps_.states.push_back(TRY(state.Digest()));
    steps_.proposals.emplace_back();
    if (target_.info().max_drafts > 0) steps_.proposals.back() = TRY(Propose(state));
    return {};
  }

  Target& target_;
  Place place_;
  std::vector<int32_t> prompt_, window_;
  std::unique_ptr<TargetState> base_;
  Steps steps_;
};

}  // namespace

Status AddWindowCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry) {
  for (const Place& place : kPlaces) {
    const std::string name = CaseName("window", {{"rows", std::to_string(place.rows)},
                                                 {"position", std::to_string(place.position)}});
    TRY(registry.Add("verify-equals-serial", name,
                     [runs, place] { return WindowRun(runs->target(), place).Verify(); }));
    TRY(registry.Add("commit-equals-serial", name,
                     [runs, place] { return WindowRun(runs->target(), place).Commit(); }));
  }
  return {};
}

}  // namespace hallmark
