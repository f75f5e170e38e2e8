// SPDX-License-Identifier: Apache-2.0
// The case of clause graph-equals-eager: rounds that are replayed as graphs against the same rounds
// launched one by one, over the lengths at which a graph is recorded anew, with sequences that come
// and go and scratch that grows, moves and is overwritten in between. For backends that record.
#ifndef HALLMARK_CONFORMANCE_CASES_GRAPH_EQUALS_EAGER_H_
#define HALLMARK_CONFORMANCE_CASES_GRAPH_EQUALS_EAGER_H_

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"
#include "conformance/harness/row.h"
#include "engine/base/result.h"

namespace hallmark {

// kUnsupported on a backend without graphs.
Result<Row> CompareGraphsWithEager(const CaseSubject& subject);

Status AddGraphEqualsEagerCases(const CaseSubject& subject, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_GRAPH_EQUALS_EAGER_H_
