// SPDX-License-Identifier: Apache-2.0
#include "engine/run/window_planner.h"

#include <algorithm>
#include <utility>

namespace hallmark {
namespace {

constexpr double kForget = 0.15;       // weight of the newest outcome or draft
constexpr double kRemember = 0.97;     // what is left of a pass's weight after one more
constexpr double kTrialShare = 0.025;  // of decoding time that trials may lose
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
  // A pass that something else held up must not decide the fit for long.
  if (passes_.weight > 4.0) seconds = std::min(seconds, 2.0 * PassSeconds(rows));
  const double x = static_cast<double>(rows);
  const auto add = [](double& sum, double term) { sum = sum * kRemember + term; };
  add(passes_.weight, 1.0);
  add(passes_.rows, x);
  add(passes_.seconds, seconds);
  add(passes_.rows_rows, x * x);
  add(passes_.rows_seconds, x * seconds);
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
  const double x = static_cast<double>(rows);
  if (passes_.weight == 0.0) return 1.0 + kRowShare * (x - 1.0);
  const double mean_rows = passes_.rows / passes_.weight;
  const double mean_seconds = passes_.seconds / passes_.weight;
  const double spread = passes_.rows_rows / passes_.weight - mean_rows * mean_rows;
  // As long as all passes were of one width, the slope is a guess.
  double slope = kRowShare * mean_seconds / (1.0 + kRowShare * (mean_rows - 1.0));
  if (spread > 1e-3) {
    slope = (passes_.rows_seconds / passes_.weight - mean_rows * mean_seconds) / spread;
  }
  slope = std::max(slope, 0.0);
  return std::max(mean_seconds + slope * (x - mean_rows), 0.1 * mean_seconds);
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
