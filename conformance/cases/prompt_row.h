// SPDX-License-Identifier: Apache-2.0
// ComparePromptRuns: two runs of the built-in prompt as one Row: state digest and the logits of
// every position, by bits. A run whose logits are dead (not finite, flat, or always the same
// token) fails however equal it is: a stuck model would pass every comparison.
#ifndef HALLMARK_CONFORMANCE_CASES_PROMPT_ROW_H_
#define HALLMARK_CONFORMANCE_CASES_PROMPT_ROW_H_

#include <string>

#include "conformance/cases/bits_row.h"
#include "conformance/cases/prompt_runs.h"

namespace hallmark {

inline Row ComparePromptRuns(const PromptRun& expected, const PromptRun& actual) {
  BitsRow row;
  row.CompareDigests(expected.state_digest, actual.state_digest, 0, "the state after the prompt");
  if (expected.logit_digests.size() != actual.logit_digests.size() ||
      expected.row_values != actual.row_values) {
    row.Refuse("the runs have different numbers of logits");
  }
  const size_t positions = std::min(expected.logit_digests.size(), actual.logit_digests.size());
  for (size_t i = 0; i < positions; ++i) {
    row.CompareDigests(expected.logit_digests[i], actual.logit_digests[i], expected.row_values,
                       "the logits of position " + std::to_string(i));
  }
  for (const PromptRun* run : {&expected, &actual}) {
    if (!run->liveness.Passed()) row.Refuse("dead logits: " + run->liveness.ToString());
  }
  row.Count("positions", positions);
  row.Count("distinct_ids", actual.liveness.distinct_ids);
  row.Count("entropy_millinats",
            static_cast<uint64_t>(std::max(0.0, actual.liveness.mean_entropy * 1000)));
  return row.Finish();
}

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_PROMPT_ROW_H_
