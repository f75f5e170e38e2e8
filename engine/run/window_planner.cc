// SPDX-License-Identifier: Apache-2.0
#include "engine/run/window_planner.h"

#include <algorithm>
#include <cmath>

namespace hallmark {
namespace {

constexpr double kForget = 0.15;      // weight of the newest measurement
constexpr double kTrialShare = 0.04;  // of decoding time that trials may lose
// Before a cost is known: a row more adds a tenth of the first row, a draft costs a row.
constexpr double kRowShare = 0.1;

double Blend(double old, double newest, double weight) { return old + weight * (newest - old); }

}  // namespace

void LandingChance::Learn(int64_t landed, int64_t guesses) {
  for (int64_t i = 0; i < std::min(landed + 1, guesses); ++i) {
    chance_ = Blend(chance_, i < landed ? 1.0 : 0.0, kForget);
  }
}

void WindowPlanner::LearnPass(int64_t rows, double seconds) {
  const auto [place, fresh] = pass_seconds_.emplace(rows, seconds);
  if (!fresh) place->second = Blend(place->second, seconds, kForget);
}

void WindowPlanner::LearnDraft(double seconds) {
  draft_seconds_ = draft_seconds_ == 0.0 ? seconds : Blend(draft_seconds_, seconds, kForget);
}

void WindowPlanner::LearnRound(double seconds, int64_t tokens, int64_t streams, bool drafted) {
  decode_seconds_ += seconds;
  if (!drafted || streams == 0) return;
  // What the same tokens would have cost one a stream and round.
  const double rounds = static_cast<double>(tokens) / static_cast<double>(streams);
  trial_loss_ = std::max(0.0, trial_loss_ + seconds - rounds * PassSeconds(streams));
}

double WindowPlanner::PassSeconds(int64_t rows) const {
  if (pass_seconds_.empty()) return 1.0 + kRowShare * static_cast<double>(rows - 1);
  const auto above = pass_seconds_.lower_bound(rows);
  if (above != pass_seconds_.end() && above->first == rows) return above->second;
  if (above != pass_seconds_.end() && above != pass_seconds_.begin()) {  // between two
    const auto below = std::prev(above);
    const double share =
        static_cast<double>(rows - below->first) / static_cast<double>(above->first - below->first);
    return Blend(below->second, above->second, share);
  }
  // Beyond what was measured: the nearest measurement, a share of its row cost for each row more.
  const auto nearest = above == pass_seconds_.end() ? std::prev(above) : above;
  const double base = nearest->second / (1.0 + kRowShare * static_cast<double>(nearest->first - 1));
  return base * (1.0 + kRowShare * static_cast<double>(rows - 1));
}

double WindowPlanner::DraftSeconds() const {
  return draft_seconds_ > 0.0 ? draft_seconds_ : PassSeconds(1);
}

bool WindowPlanner::TrialAllowed(double cost) const {
  return trial_loss_ + cost <= kTrialShare * decode_seconds_;
}

std::vector<int64_t> WindowPlanner::Plan(std::span<const WindowOffer> offers, int64_t max_rows) {
  std::vector<int64_t> plan(offers.size(), 0);
  const int64_t streams = static_cast<int64_t>(offers.size());
  int64_t rows = streams;
  for (size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].fixed < 0) continue;
    plan[i] = std::clamp<int64_t>(offers[i].fixed, 0, std::min(offers[i].guesses, max_rows - rows));
    rows += plan[i];
  }

  // Every further guess in order of its chance to land; the best prefix of that order is the plan.
  struct Guess {
    double chance;
    size_t stream;
  };
  const auto best_prefix = [&](bool with_drafter) {
    std::vector<Guess> guesses;
    for (size_t i = 0; i < offers.size(); ++i) {
      if (offers[i].fixed >= 0 || (offers[i].drafted && !with_drafter)) continue;
      double chance = 1.0;
      for (int64_t k = 0; k < offers[i].guesses; ++k) {
        chance *= offers[i].chance;
        guesses.push_back({chance, i});
      }
    }
    std::stable_sort(guesses.begin(), guesses.end(),
                     [](const Guess& a, const Guess& b) { return a.chance > b.chance; });
    double tokens = static_cast<double>(streams);
    double best_rate = tokens / PassSeconds(rows);
    size_t best = 0;
    bool drafts = false;
    for (size_t n = 0; n < guesses.size() && rows + static_cast<int64_t>(n) < max_rows; ++n) {
      tokens += guesses[n].chance;
      drafts = drafts || offers[guesses[n].stream].drafted;
      const double rate = tokens / (PassSeconds(rows + static_cast<int64_t>(n) + 1) +
                                    (drafts ? DraftSeconds() : 0.0));
      if (rate <= best_rate) continue;
      best_rate = rate;
      best = n + 1;
    }
    guesses.resize(best);
    return std::pair(best_rate, guesses);
  };
  auto [rate, chosen] = best_prefix(false);
  auto [drafted_rate, drafted] = best_prefix(true);
  if (drafted_rate > rate) chosen = drafted;
  for (const Guess& guess : chosen) ++plan[guess.stream];
  rows += static_cast<int64_t>(chosen.size());

  // A drafter that looks too dear is tried again now and then: texts change.
  for (size_t i = 0; i < offers.size(); ++i) {
    const WindowOffer& offer = offers[i];
    if (offer.fixed >= 0 || !offer.drafted || offer.guesses == 0 || plan[i] > 0) continue;
    const int64_t trial = std::min<int64_t>({offer.guesses, 3, max_rows - rows});
    const double cost = DraftSeconds() + PassSeconds(rows + trial) - PassSeconds(rows);
    if (trial < 1 || !TrialAllowed(cost)) continue;
    plan[i] = trial;
    break;
  }
  return plan;
}

}  // namespace hallmark
