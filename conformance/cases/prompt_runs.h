// SPDX-License-Identifier: Apache-2.0
// PromptRuns: the built-in prompt of 200 ids fed to fresh sequences in pieces of a given size, each
// size run once and remembered by digest. The pieces decide which rows share a call; clauses
// row-invariance and chunked-equals-whole say that they decide no bit. Not thread-safe.
//
// The prompt is a rule and not a text, so that it exists for any vocabulary: id i is
// SplitMix64(kPromptSeed).Below(drawable ids).
#ifndef HALLMARK_CONFORMANCE_CASES_PROMPT_RUNS_H_
#define HALLMARK_CONFORMANCE_CASES_PROMPT_RUNS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/cases/subject.h"
#include "conformance/harness/comparators.h"
#include "engine/base/result.h"

namespace hallmark {

inline constexpr int64_t kPromptTokens = 200;
inline constexpr uint64_t kPromptSeed = 0x48616C6C6D61726Bull;

std::vector<int32_t> BuiltInPrompt(int64_t drawable_ids);

struct PromptRun {
  uint64_t row_values = 0;                 // logits a position
  std::string state_digest;                // Sequence::StateDigest after the last id
  std::vector<std::string> logit_digests;  // one a position, over its row of logits
  Liveness liveness;                       // of all positions' logits
};

class PromptRuns {
 public:
  explicit PromptRuns(const CaseSubject& subject) : subject_(subject) {}

  // The run in pieces of `chunk` ids; 0 hands the whole prompt over at once. The pointer lives as
  // long as this object.
  Result<const PromptRun*> Get(int64_t chunk);

 private:
  Result<PromptRun> Run(int64_t chunk) const;

  CaseSubject subject_;
  std::map<int64_t, PromptRun> runs_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_PROMPT_RUNS_H_
