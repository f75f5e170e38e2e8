// SPDX-License-Identifier: Apache-2.0
#include "engine/run/window_planner.h"

#include <gtest/gtest.h>

#include <numeric>

namespace hallmark {
namespace {

// A machine whose pass costs `row` more for each row, told to the planner.
WindowPlanner Taught(double row, double draft) {
  WindowPlanner planner;
  for (int i = 0; i < 30; ++i) {
    for (const int64_t rows : {1, 8}) {
      planner.LearnPass(rows, 1.0 + row * static_cast<double>(rows - 1));
    }
    planner.LearnDraft(draft);
    planner.LearnRound(1.0, 1, 1, false);
  }
  return planner;
}

TEST(WindowPlanner, WidensWhatLandsAndLeavesWhatDoesNot) {
  WindowPlanner planner = Taught(0.1, 0.0001);
  const auto plan = [&](double chance) {
    return planner.Plan(std::vector<WindowOffer>{{.guesses = 15, .chance = chance}}, 128)[0];
  };
  EXPECT_EQ(plan(0.99), 15);
  EXPECT_EQ(plan(0.02), 0);
  EXPECT_GT(plan(0.7), 0);
  EXPECT_LT(plan(0.7), plan(0.9));
}

TEST(WindowPlanner, ADrafterThatCostsMoreThanItBringsIsLeftAlone) {
  const WindowOffer offer{.guesses = 7, .chance = 0.6, .drafted = true};
  WindowPlanner cheap = Taught(0.05, 0.1);
  EXPECT_GT(cheap.Plan({{offer}}, 128)[0], 0);
  WindowPlanner dear = Taught(0.3, 5.0);
  EXPECT_EQ(dear.Plan({{offer}}, 128)[0], 0);
}

TEST(WindowPlanner, TriesADearDrafterAgainWithinItsShareOfTheTime) {
  WindowPlanner planner = Taught(0.3, 2.0);
  const WindowOffer offer{.guesses = 7, .chance = 0.1, .drafted = true};
  int64_t trials = 0;
  double lost = 0.0;
  for (int round = 0; round < 2000; ++round) {
    const bool tried = planner.Plan({{offer}}, 128)[0] > 0;
    trials += tried;
    lost += tried ? 3.0 : 0.0;
    planner.LearnRound(tried ? 4.0 : 1.0, 1, 1, tried);
  }
  EXPECT_GT(trials, 2);
  EXPECT_LT(lost, 0.1 * 2000.0);
}

TEST(WindowPlanner, FixedWidthsAreTakenWhateverTheyCost) {
  WindowPlanner planner = Taught(10.0, 10.0);
  const std::vector<WindowOffer> offers = {{.guesses = 7, .chance = 0.0, .fixed = 7},
                                           {.guesses = 3, .chance = 0.0, .fixed = 5},
                                           {.guesses = 9, .chance = 0.0, .fixed = 0}};
  EXPECT_EQ(planner.Plan(offers, 128), std::vector<int64_t>({7, 3, 0}));
}

TEST(WindowPlanner, NeverPlansMoreRowsThanACallTakes) {
  WindowPlanner planner = Taught(0.0, 0.0001);
  for (const int64_t max_rows : {8, 9, 24, 128}) {
    const std::vector<WindowOffer> offers(8, {.guesses = 15, .chance = 0.95});
    const auto plan = planner.Plan(offers, max_rows);
    EXPECT_LE(std::accumulate(plan.begin(), plan.end(), int64_t{8}), max_rows);
    const std::vector<WindowOffer> fixed(8, {.guesses = 15, .fixed = 15});
    const auto taken = planner.Plan(fixed, max_rows);
    EXPECT_LE(std::accumulate(taken.begin(), taken.end(), int64_t{8}), max_rows);
  }
}

TEST(WindowPlanner, OnePassThatWasHeldUpDoesNotDecide) {
  WindowPlanner planner = Taught(0.1, 0.0001);
  const std::vector<WindowOffer> offers = {{.guesses = 15, .chance = 0.95}};
  const auto before = planner.Plan(offers, 128);
  planner.LearnPass(16, 500.0);
  EXPECT_GE(planner.Plan(offers, 128)[0], before[0] / 2);
}

TEST(LandingChance, FollowsOutcomes) {
  LandingChance chance(0.5);
  for (int i = 0; i < 40; ++i) chance.Learn(7, 7);
  EXPECT_GT(chance.value(), 0.95);
  for (int i = 0; i < 40; ++i) chance.Learn(0, 7);
  EXPECT_LT(chance.value(), 0.05);
}

}  // namespace
}  // namespace hallmark
