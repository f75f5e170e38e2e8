// SPDX-License-Identifier: Apache-2.0
// Cases of clause model-golden: logits, hidden rows and greedy choices of a golden model against
// its fp32 reference, within the tolerance register. For any other checkpoint there is no
// reference, so there are no cases: absent, never passed.
#ifndef HALLMARK_CONFORMANCE_CASES_MODEL_GOLDEN_H_
#define HALLMARK_CONFORMANCE_CASES_MODEL_GOLDEN_H_

#include <span>
#include <string>
#include <string_view>

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"

namespace hallmark {

// The golden models with a reference, by their folder names under golden/models.
std::span<const std::string_view> GoldenModelNames();

// Adds the cases of one golden model: "NAME,run=R,logits", "...,hidden", "...,argmax". Reads the
// names of its runs from the golden file, so the list is known before anything runs.
Status AddModelGoldenCases(const CaseSubject& subject, const std::string& model,
                           CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_MODEL_GOLDEN_H_
