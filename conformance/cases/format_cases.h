// SPDX-License-Identifier: Apache-2.0
// Cases of clauses format-accept and format-reject: the checkpoint itself, every tensor and byte of
// it bound or listed as unused, and the published EXL3 group headers, accepted or refused as they
// say. The fault-by-fault suites live in conformance/format.
#ifndef HALLMARK_CONFORMANCE_CASES_FORMAT_CASES_H_
#define HALLMARK_CONFORMANCE_CASES_FORMAT_CASES_H_

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"

namespace hallmark {

// format-accept "checkpoint" and "published-groups"; format-reject "published-groups".
Status AddFormatCases(const CaseSubject& subject, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_FORMAT_CASES_H_
