// SPDX-License-Identifier: Apache-2.0
// Cases of clause sampler-exact: the published draws of the keyed sampler, ties included, and its
// published keys. Needs no checkpoint: the sampler takes plain logits.
#ifndef HALLMARK_CONFORMANCE_CASES_SAMPLER_EXACT_H_
#define HALLMARK_CONFORMANCE_CASES_SAMPLER_EXACT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"
#include "engine/run/sampler.h"

namespace hallmark {

// One published draw.
struct SamplerDraw {
  SamplingParams params;
  uint64_t position = 0;
  std::vector<float> logits;
  int32_t token = 0;

  // Whether two logits are equal, so that the order of ids decides something.
  bool HasTies() const;
};

// Reads a file of draws; kMalformed with the JSON pointer of the first member that is not as
// expected, or when the file holds no draw.
Result<std::vector<SamplerDraw>> ReadSamplerDraws(const std::string& path);

// Adds "draws" (all published draws) and "ties" (those with equal logits).
Status AddSamplerExactCases(const CaseSubject& subject, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_SAMPLER_EXACT_H_
