// SPDX-License-Identifier: Apache-2.0
// The keyed sampler: a token is a function of logits, settings, seed and absolute position, so that
// a draft can be checked for equality and a run can be repeated. float64 throughout.
// Implements clause sampler-exact. The rule:
//   1. order candidates by (logit descending, id ascending); keep the first top_k (0: all);
//   2. scaled = logit / max(temperature, 1e-6);
//   3. if 0 < top_p < 1: p = exp(scaled - scaled[0]) / sum, keep count(cumsum(p) < top_p) + 1;
//   4. if min_p > 0: keep scaled >= scaled[0] + ln(min_p);
//   5. draw argmax(scaled - ln(-ln u(key))), the first in order winning ties.
// With temperature <= 0: the largest logit, lowest id first.
#ifndef HALLMARK_ENGINE_RUN_SAMPLER_H_
#define HALLMARK_ENGINE_RUN_SAMPLER_H_

#include <cstdint>
#include <span>

#include "engine/base/result.h"

namespace hallmark {

struct SamplingParams {
  double temperature = 0.0;  // <= 0: greedy
  int64_t top_k = 0;         // 0: all
  double top_p = 1.0;        // outside (0, 1): off
  double min_p = 0.0;        // <= 0: off
  uint64_t seed = 0;
};

// kOutOfRange with the flag's name for a value that no rule covers (NaN, negative top_k, ...).
Status CheckSamplingParams(const SamplingParams& params);

// The 64-bit key of a candidate; splitmix64's finalizer, folded three times.
uint64_t SamplerKey(uint64_t seed, uint64_t position, uint64_t token);
// (key >> 11) * 2^-53 + 2^-54, in (0, 1].
double SamplerUniform(uint64_t key);
// What a candidate's scaled logit is raised by: -ln(-ln u).
double SamplerNoise(uint64_t seed, uint64_t position, uint64_t token);

// Draws the token at `position` (the prompt's length for the first reply token) from fp32 logits
// indexed by token id. kOutOfRange if a logit is NaN or +infinity, or if none is finite.
Result<int32_t> SampleToken(std::span<const float> logits, const SamplingParams& params,
                            uint64_t position);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_RUN_SAMPLER_H_
