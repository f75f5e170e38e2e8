// SPDX-License-Identifier: Apache-2.0
// Cases of clause resumed-equals-fresh: a prompt resumed from a kept state, with 1 to 129 ids left
// over, equals the same prompt fresh in a scheduler that keeps nothing. Kept ends lie on and off
// the ends of tiles, pages and chunks, after prompts and after drafted replies.
#ifndef HALLMARK_CONFORMANCE_CASES_RESUMED_EQUALS_FRESH_H_
#define HALLMARK_CONFORMANCE_CASES_RESUMED_EQUALS_FRESH_H_

#include <memory>

#include "conformance/cases/lane_runs.h"
#include "conformance/harness/registry.h"

namespace hallmark {

Status AddResumedEqualsFreshCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_RESUMED_EQUALS_FRESH_H_
