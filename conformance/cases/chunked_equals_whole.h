// SPDX-License-Identifier: Apache-2.0
// Cases of clause chunked-equals-whole: the built-in prompt in pieces of 1, 2, 16, 17, 63, 64, 65
// and 128 ids leaves the state and gives the logits of the prompt handed over whole.
#ifndef HALLMARK_CONFORMANCE_CASES_CHUNKED_EQUALS_WHOLE_H_
#define HALLMARK_CONFORMANCE_CASES_CHUNKED_EQUALS_WHOLE_H_

#include <memory>

#include "conformance/cases/prompt_runs.h"
#include "conformance/harness/registry.h"

namespace hallmark {

Status AddChunkedEqualsWholeCases(std::shared_ptr<PromptRuns> runs, CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_CHUNKED_EQUALS_WHOLE_H_
