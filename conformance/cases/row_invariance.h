// SPDX-License-Identifier: Apache-2.0
// Cases of clause row-invariance:
//   linears   every linear of the checkpoint, head included, on fixed inputs: m rows in one call
//             equal the row alone, for several m;
//   forward   the logits of every position of the built-in prompt, m rows at once, equal those of
//             one row at a time.
#ifndef HALLMARK_CONFORMANCE_CASES_ROW_INVARIANCE_H_
#define HALLMARK_CONFORMANCE_CASES_ROW_INVARIANCE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/prompt_runs.h"
#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"
#include "engine/model/model.h"

namespace hallmark {

// Every linear of a model in layer order, each with a name such as "layers.3.attention.q".
std::vector<std::pair<std::string, const LinearWeight*>> LinearsOf(const Model& model);

// "linears,rows=m".
Status AddLinearRowCases(const CaseSubject& subject, CaseRegistry& registry);

// "forward,rows=m". `runs` may be shared with the cases of chunked-equals-whole.
Status AddForwardRowCases(std::shared_ptr<PromptRuns> runs, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_ROW_INVARIANCE_H_
