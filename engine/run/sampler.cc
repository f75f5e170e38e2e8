// SPDX-License-Identifier: Apache-2.0
#include "engine/run/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/elementary.h"

namespace hallmark {
namespace {

struct Candidate {
  float logit;
  int32_t id;
};

bool Before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

uint64_t Fold(uint64_t v) {
  v ^= v >> 30;
  v *= 0xBF58476D1CE4E5B9ull;
  v ^= v >> 27;
  v *= 0x94D049BB133111EBull;
  return v ^ (v >> 31);
}

Status CheckLogits(std::span<const float> logits) {
  bool any_finite = false;
  for (size_t id = 0; id < logits.size(); ++id) {
    const float logit = logits[id];
    if (logit != logit || logit == std::numeric_limits<float>::infinity()) {
      return Fail(Code::kOutOfRange, "the logit of token " + std::to_string(id) + " is not finite");
    }
    any_finite = any_finite || logit > -std::numeric_limits<float>::infinity();
  }
  if (!any_finite) return Fail(Code::kOutOfRange, "no token has a finite logit");
  return {};
}

int32_t Greedy(std::span<const float> logits) {
  // max_element keeps the first of equal values: the lowest id.
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Length of the shortest prefix of `kept` that holds the top_p share of its mass.
size_t NucleusSize(const std::vector<Candidate>& kept, double temperature, double top_p) {
  std::vector<double> mass(kept.size());
  double sum = 0.0;
  for (size_t i = 0; i < kept.size(); ++i) {
    mass[i] = Exp((static_cast<double>(kept[i].logit) / temperature) -
                  (static_cast<double>(kept[0].logit) / temperature));
    sum += mass[i];
  }
  size_t below = 0;
  double cumulative = 0.0;
  for (const double m : mass) {
    cumulative += m / sum;
    if (cumulative < top_p) ++below;
  }
  return std::min(below + 1, kept.size());
}

}  // namespace

Status CheckSamplingParams(const SamplingParams& params) {
  if (!std::isfinite(params.temperature)) {
    return Fail(Code::kOutOfRange, "expected a finite temperature", {.flag = "--temperature"});
  }
  if (params.top_k < 0) {
    return Fail(Code::kOutOfRange, "expected a top-k of 0 (all) or more", {.flag = "--top-k"});
  }
  if (!(params.top_p >= 0.0 && params.top_p <= 1.0)) {
    return Fail(Code::kOutOfRange, "expected a top-p from 0 to 1", {.flag = "--top-p"});
  }
  if (!(params.min_p >= 0.0 && params.min_p <= 1.0)) {
    return Fail(Code::kOutOfRange, "expected a min-p from 0 to 1", {.flag = "--min-p"});
  }
  return {};
}

uint64_t SamplerKey(uint64_t seed, uint64_t position, uint64_t token) {
  const uint64_t from_seed = Fold(seed + 0x9E3779B97F4A7C15ull);
  const uint64_t at_position = Fold(from_seed ^ (position * 0xD1B54A32D192ED03ull));
  return Fold(at_position ^ token);
}

double SamplerUniform(uint64_t key) { return static_cast<double>(key >> 11) * 0x1p-53 + 0x1p-54; }

double SamplerNoise(uint64_t seed, uint64_t position, uint64_t token) {
  return -Log(-Log(SamplerUniform(SamplerKey(seed, position, token))));
}

Result<int32_t> SampleToken(std::span<const float> logits, const SamplingParams& params,
                            uint64_t position) {
  TRY(CheckSamplingParams(params));
  TRY(CheckLogits(logits));
  if (params.temperature <= 0.0) return Greedy(logits);

  const double temperature = std::max(params.temperature, 1e-6);
  std::vector<Candidate> kept(logits.size());
  for (size_t id = 0; id < logits.size(); ++id) kept[id] = {logits[id], static_cast<int32_t>(id)};
  if (params.top_k > 0 && params.top_k < static_cast<int64_t>(kept.size())) {
    std::nth_element(kept.begin(), kept.begin() + (params.top_k - 1), kept.end(), Before);
    kept.resize(static_cast<size_t>(params.top_k));
  }
  std::sort(kept.begin(), kept.end(), Before);
  if (params.top_p > 0.0 && params.top_p < 1.0) {
    kept.resize(NucleusSize(kept, temperature, params.top_p));
  }
  const double best_scaled = static_cast<double>(kept[0].logit) / temperature;
  const double floor = params.min_p > 0.0 ? best_scaled + Log(params.min_p)
                                          : -std::numeric_limits<double>::infinity();
  int32_t token = kept[0].id;
  double best = -std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : kept) {
    const double scaled = static_cast<double>(candidate.logit) / temperature;
    if (scaled < floor) break;  // in descending order: the rest are lower still
    const double score = scaled + SamplerNoise(params.seed, position, candidate.id);
    if (score > best) {
      best = score;
      token = candidate.id;
    }
  }
  return token;
}

}  // namespace hallmark
