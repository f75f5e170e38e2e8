// SPDX-License-Identifier: Apache-2.0
// RowTrace: what a play of calls gave, as a PromptRun: the digest of each row of logits in the
// order of the calls, the states it left, and whether its logits were alive.
#ifndef HALLMARK_CONFORMANCE_CASES_ROW_TRACE_H_
#define HALLMARK_CONFORMANCE_CASES_ROW_TRACE_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/prompt_runs.h"
#include "engine/base/sha256.h"

namespace hallmark {

class RowTrace {
 public:
  // `columns` logits a row.
  explicit RowTrace(int64_t columns) : columns_(static_cast<size_t>(columns)) {}

  void Keep(std::span<const float> logits) {
    all_.insert(all_.end(), logits.begin(), logits.end());
  }
  void KeepState(const std::string& digest) { run_.state_digest += digest; }

  PromptRun Finish() && {
    run_.row_values = columns_;
    for (size_t at = 0; at + columns_ <= all_.size(); at += columns_) {
      run_.logit_digests.push_back(Sha256HexOf(std::span<const float>(all_).subspan(at, columns_)));
    }
    run_.liveness = MeasureLiveness(all_, columns_);
    return std::move(run_);
  }

 private:
  const size_t columns_;
  std::vector<float> all_;
  PromptRun run_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_ROW_TRACE_H_
