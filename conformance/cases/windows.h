// SPDX-License-Identifier: Apache-2.0
// Cases of clauses verify-equals-serial and commit-equals-serial: windows of 1 to 17 rows that
// begin beside and on the ends of key tiles, pages and key chunks. Every row's logits equal those
// of the serial step, and a commit of any number of rows, none and all included, leaves the state,
// the drafter's next proposal included, that as many steps leave.
#ifndef HALLMARK_CONFORMANCE_CASES_WINDOWS_H_
#define HALLMARK_CONFORMANCE_CASES_WINDOWS_H_

#include <memory>

#include "conformance/cases/lane_runs.h"
#include "conformance/harness/registry.h"

namespace hallmark {

Status AddWindowCases(std::shared_ptr<LaneRuns> runs, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_WINDOWS_H_
