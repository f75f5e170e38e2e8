// SPDX-License-Identifier: Apache-2.0
// Cases of clause text-exact: the published strings through the tokenizer they were made with
// (golden, not the checkpoint's), to ids and back.
#ifndef HALLMARK_CONFORMANCE_CASES_TEXT_EXACT_H_
#define HALLMARK_CONFORMANCE_CASES_TEXT_EXACT_H_

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"

namespace hallmark {

// "ids": every string gives the published ids. "stream": the ids decoded one by one give the text
// that decoding them together gives, and those made of whole strings give the string back.
Status AddTextExactCases(const CaseSubject& subject, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_TEXT_EXACT_H_
