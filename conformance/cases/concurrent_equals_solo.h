// SPDX-License-Identifier: Apache-2.0
// Cases of clauses concurrent-equals-solo and failure-isolation: streams that share rounds, greedy
// and sampled, drafted and not, begun one after another, beside neighbours that are cancelled, end
// early or cannot run, equal the same streams alone; and everything held is given back.
#ifndef HALLMARK_CONFORMANCE_CASES_CONCURRENT_EQUALS_SOLO_H_
#define HALLMARK_CONFORMANCE_CASES_CONCURRENT_EQUALS_SOLO_H_

#include <memory>

#include "conformance/cases/lane_runs.h"
#include "conformance/harness/registry.h"

namespace hallmark {

Status AddConcurrentEqualsSoloCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry);
Status AddFailureIsolationCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_CONCURRENT_EQUALS_SOLO_H_
