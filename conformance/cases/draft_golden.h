// SPDX-License-Identifier: Apache-2.0
// Cases of clause draft-golden: rows and proposals of a golden drafter against the published
// module's, within the tolerance register. The subject's checkpoint is the drafter's target. For
// any other drafter there is no reference, so there are no cases: absent, never passed.
#ifndef HALLMARK_CONFORMANCE_CASES_DRAFT_GOLDEN_H_
#define HALLMARK_CONFORMANCE_CASES_DRAFT_GOLDEN_H_

#include <span>
#include <string>
#include <string_view>

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"

namespace hallmark {

// A drafter with a reference and the target it was made for, by their folder names under
// golden/models.
struct GoldenDrafter {
  std::string_view drafter;
  std::string_view target;
};
std::span<const GoldenDrafter> GoldenDrafters();

// Adds the cases of one golden drafter: "NAME,run=R,taps=recorded,compared=rows", "...,
// compared=proposals", and "NAME,run=R,taps=own,compared=proposals" with the taps of the subject's
// own pass. Reads the names of its runs from the golden files, so the list is known before anything
// runs; the drafter is opened by the first case. kNotFound for a name that is none of
// GoldenDrafters.
Status AddDraftGoldenCases(const CaseSubject& subject, const std::string& drafter,
                           CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_DRAFT_GOLDEN_H_
