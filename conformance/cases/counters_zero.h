// SPDX-License-Identifier: Apache-2.0
// Cases of clause counters-zero: on a backend of its own beside the session's, linears that are
// split are run in an order in which counters and partial sums are new, suffice, and grow into
// memory that was full of ones; after each call every counter is read back, and results are those
// of the same rows before. Then the session's own, after a pass. For backends with DeviceChecks.
#ifndef HALLMARK_CONFORMANCE_CASES_COUNTERS_ZERO_H_
#define HALLMARK_CONFORMANCE_CASES_COUNTERS_ZERO_H_

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"

namespace hallmark {

Status AddCountersZeroCases(const CaseSubject& subject, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_COUNTERS_ZERO_H_
