// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/chunked_equals_whole.h"

#include "conformance/cases/prompt_row.h"

namespace hallmark {

Status AddChunkedEqualsWholeCases(std::shared_ptr<PromptRuns> runs, CaseRegistry& registry) {
  for (const int64_t cut : {1, 2, 16, 17, 63, 64, 65, 127}) {
    TRY(registry.Add("chunked-equals-whole", CaseName("prompt", {{"cut", std::to_string(cut)}}),
                     [runs, cut]() -> Result<Row> {
                       const PromptRun* whole = TRY(runs->Get(0));
                       return ComparePromptRuns(*whole, *TRY(runs->Get(cut)));
                     }));
  }
  return {};
}

}  // namespace hallmark
