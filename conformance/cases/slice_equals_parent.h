// SPDX-License-Identifier: Apache-2.0
// Cases of clause slice-equals-parent: strips of the head's columns, first, last, inner and several
// at once, have the bits of the same columns of the whole head.
#ifndef HALLMARK_CONFORMANCE_CASES_SLICE_EQUALS_PARENT_H_
#define HALLMARK_CONFORMANCE_CASES_SLICE_EQUALS_PARENT_H_

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"

namespace hallmark {

Status AddSliceEqualsParentCases(const CaseSubject& subject, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_SLICE_EQUALS_PARENT_H_
