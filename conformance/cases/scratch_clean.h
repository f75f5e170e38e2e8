// SPDX-License-Identifier: Apache-2.0
// Cases of clause scratch-clean: the built-in prompt in pieces, two sequences in one call, a window
// that is partly committed and rows after it, with the memory that the phases of a layer share
// filled with NaN whenever a phase has ended, or shared and not filled, against the same with
// memory for each phase apart. For every backend.
#ifndef HALLMARK_CONFORMANCE_CASES_SCRATCH_CLEAN_H_
#define HALLMARK_CONFORMANCE_CASES_SCRATCH_CLEAN_H_

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"

namespace hallmark {

Status AddScratchCleanCases(const CaseSubject& subject, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_SCRATCH_CLEAN_H_
