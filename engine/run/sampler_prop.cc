// SPDX-License-Identifier: Apache-2.0
// Clause: sampler-exact
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "engine/run/sampler.h"

namespace hallmark {
namespace {

// Few distinct values, so that ties are common.
std::vector<float> AnyLogits() {
  const auto steps =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(-24, 25)));
  std::vector<float> logits;
  for (const int step : steps) logits.push_back(0.25f * static_cast<float>(step));
  return logits;
}

SamplingParams AnySampling() {
  return {.temperature = 0.1 * *rc::gen::inRange(1, 21),
          .top_k = *rc::gen::inRange<int64_t>(0, 12),
          .top_p = 0.05 * *rc::gen::inRange(1, 21),
          .min_p = *rc::gen::element(0.0, 0.02, 0.1, 0.5),
          .seed = *rc::gen::arbitrary<uint64_t>()};
}

uint64_t AnyPosition() { return *rc::gen::inRange<uint64_t>(0, uint64_t{1} << 40); }

// The kept set by the words of the rule alone: long double, quadratic, libm. `slack` widens (or,
// negative, narrows) the top-p and min-p thresholds, where another rounding may decide otherwise.
std::set<int32_t> NaiveKept(const std::vector<float>& logits, const SamplingParams& params,
                            long double slack) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (params.top_k > 0) order.resize(std::min<size_t>(order.size(), params.top_k));
  const auto weight = [&](int32_t id) {
    return std::exp((static_cast<long double>(logits[id]) - logits[order[0]]) / params.temperature);
  };
  if (params.top_p > 0 && params.top_p < 1) {
    long double total = 0;
    for (const int32_t id : order) total += weight(id);
    std::vector<int32_t> nucleus;
    long double before = 0;
    for (const int32_t id : order) {
      if (!nucleus.empty() && before / total >= params.top_p + slack) break;
      nucleus.push_back(id);
      before += weight(id);
    }
    order = nucleus;
  }
  std::set<int32_t> kept;
  for (const int32_t id : order) {
    if (params.min_p <= 0 || weight(id) >= params.min_p - slack) kept.insert(id);
  }
  return kept;
}

RC_GTEST_PROP(SampleToken, TopOneIsGreedy, ()) {
  const std::vector<float> logits = AnyLogits();
  SamplingParams params = AnySampling();
  params.top_k = 1;
  const int32_t greedy = *SampleToken(logits, {}, 0);
  RC_ASSERT(*SampleToken(logits, params, AnyPosition()) == greedy);
}

RC_GTEST_PROP(SampleToken, DrawsInsideTheSetANaiveReaderOfTheRuleKeeps, ()) {
  const std::vector<float> logits = AnyLogits();
  const SamplingParams params = AnySampling();
  const std::set<int32_t> kept = NaiveKept(logits, params, 1e-9L);
  for (int i = 0; i < 16; ++i) {
    RC_ASSERT(kept.contains(*SampleToken(logits, params, AnyPosition())));
  }
}

RC_GTEST_PROP(SampleToken, ReachesEveryKeptTokenThatWinsItsKey, ()) {
  // The winner by the naive scores is drawn, where no threshold is close to its share.
  const std::vector<float> logits = AnyLogits();
  const SamplingParams params = AnySampling();
  const uint64_t position = AnyPosition();
  RC_PRE(NaiveKept(logits, params, 1e-9L) == NaiveKept(logits, params, -1e-9L));
  long double best = -INFINITY;
  long double second = -INFINITY;
  int32_t winner = -1;
  for (const int32_t id : NaiveKept(logits, params, 0)) {
    const long double u = SamplerUniform(SamplerKey(params.seed, position, id));
    const long double score = logits[id] / params.temperature - std::log(-std::log(u));
    if (score > best) {
      second = best;
      best = score;
      winner = id;
    } else {
      second = std::max(second, score);
    }
  }
  RC_PRE(best - second > 1e-9L);
  RC_ASSERT(*SampleToken(logits, params, position) == winner);
}

RC_GTEST_PROP(SampleToken, ATokenOutsideTheKeptSetChangesNothing, ()) {
  // Top-k alone cuts by order, so what lies below may take any value.
  std::vector<float> logits = AnyLogits();
  SamplingParams params = AnySampling();
  params.top_p = 1.0;
  params.min_p = 0.0;
  params.top_k = *rc::gen::inRange<int64_t>(1, 6);
  const uint64_t position = AnyPosition();
  const int32_t before = *SampleToken(logits, params, position);
  const std::set<int32_t> kept = NaiveKept(logits, params, 0);
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!kept.contains(static_cast<int32_t>(id))) logits[id] -= 1.0f;
  }
  RC_ASSERT(*SampleToken(logits, params, position) == before);
}

RC_GTEST_PROP(SampleToken, IsAFunctionOfLogitAndIdPairs, ()) {
  // A row padded with -infinity, or drawn after another draw, gives the same token: nothing but the
  // finite (logit, id) pairs, the seed and the position counts.
  std::vector<float> logits = AnyLogits();
  const SamplingParams params = AnySampling();
  const uint64_t position = AnyPosition();
  const int32_t token = *SampleToken(logits, params, position);
  (void)*SampleToken(logits, params, position + 1);
  RC_ASSERT(*SampleToken(logits, params, position) == token);
  logits.resize(logits.size() + *rc::gen::inRange<size_t>(1, 40), -INFINITY);
  RC_ASSERT(*SampleToken(logits, params, position) == token);
}

RC_GTEST_PROP(SampleToken, AShiftOfAllLogitsByAPowerOfTwoStepKeepsTheGreedyToken, ()) {
  // Steps of 0.25 added to multiples of 0.25 are exact, so ties stay ties.
  std::vector<float> logits = AnyLogits();
  const int32_t token = *SampleToken(logits, {}, 0);
  const float shift = 0.25f * static_cast<float>(*rc::gen::inRange(-400, 400));
  for (float& logit : logits) logit += shift;
  RC_ASSERT(*SampleToken(logits, {}, 0) == token);
  RC_ASSERT(logits[token] == *std::max_element(logits.begin(), logits.end()));
  RC_ASSERT(std::find(logits.begin(), logits.end(), logits[token]) - logits.begin() == token);
}

}  // namespace
}  // namespace hallmark
