// SPDX-License-Identifier: Apache-2.0
// Cases of clauses drafted-equals-undrafted and copy-gate-neutral: replies with the drafter, with
// copies, with both, and with a replayed drafter that goes through every accepted length, have the
// ids, logits and state of the serial reply; and there are fewer rounds than ids.
#ifndef HALLMARK_CONFORMANCE_CASES_DRAFTED_EQUALS_UNDRAFTED_H_
#define HALLMARK_CONFORMANCE_CASES_DRAFTED_EQUALS_UNDRAFTED_H_

#include <memory>

#include "conformance/cases/lane_runs.h"
#include "conformance/harness/registry.h"

namespace hallmark {

// Windows are fixed in all of them, so that counts repeat.
Status AddDraftedEqualsUndraftedCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry);
Status AddCopyGateNeutralCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_DRAFTED_EQUALS_UNDRAFTED_H_
