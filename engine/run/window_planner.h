// SPDX-License-Identifier: Apache-2.0
// WindowPlanner: how many guessed ids each stream of a round should verify, so that tokens per
// second are highest: from measured costs of rows and drafts, and from how often guesses landed.
// Decides speed alone; the engine's exactness does not rest on it. Pure arithmetic over what it was
// told: it reads no clock.
//
// Model: a guess at depth i lands with chance p^i, so k guesses bring 1 + p + ... + p^k ids; a
// round costs T(rows) and, if any stream drafts, the drafter's D. Trying an unpromising drafter
// costs time, so trials stay under a share of the time spent decoding.
#ifndef HALLMARK_ENGINE_RUN_WINDOW_PLANNER_H_
#define HALLMARK_ENGINE_RUN_WINDOW_PLANNER_H_

#include <cstdint>
#include <span>
#include <vector>

namespace hallmark {

// Chance that a guess lands, learned from outcomes, the recent ones weighing more.
class LandingChance {
 public:
  explicit LandingChance(double start) : chance_(start) {}
  // Of `guesses` in a chain, the first `landed` were right.
  void Learn(int64_t landed, int64_t guesses);
  double value() const { return chance_; }

 private:
  double chance_;
};

// What one stream could verify in the coming round.
struct WindowOffer {
  int64_t guesses = 0;   // at most
  double chance = 0.0;   // of each to land after the one before
  bool drafted = false;  // the guesses come from the drafter and are still to be made
  int64_t fixed = -1;    // >= 0: take min(fixed, guesses), whatever it costs
};

class WindowPlanner {
 public:
  // Seconds of a pass over `rows` rows, and of one call of the drafter.
  void LearnPass(int64_t rows, double seconds);
  void LearnDraft(double seconds);
  // A round with drafts took `seconds` and brought `tokens` over `streams` streams.
  void LearnRound(double seconds, int64_t tokens, int64_t streams, bool drafted);

  // Guesses to verify for each offer; with one row more a stream, at most `max_rows` in all (which
  // holds a row for each).
  std::vector<int64_t> Plan(std::span<const WindowOffer> offers, int64_t max_rows);

 private:
  double PassSeconds(int64_t rows) const;
  double DraftSeconds() const;
  bool TrialAllowed(double cost) const;

  // Sums over passes for the fit, each pass weighing less with every later one.
  struct {
    double weight = 0.0, rows = 0.0, seconds = 0.0, rows_rows = 0.0, rows_seconds = 0.0;
  } passes_;
  double draft_seconds_ = 0.0;  // 0: never measured
  double decode_seconds_ = 0.0;
  double trial_loss_ = 0.0;  // seconds drafting cost beyond what its tokens were worth
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_RUN_WINDOW_PLANNER_H_
