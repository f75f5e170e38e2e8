// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/levels.h"

#include <memory>

#include "conformance/cases/chunked_equals_whole.h"
#include "conformance/cases/decode_exact.h"
#include "conformance/cases/format_cases.h"
#include "conformance/cases/prompt_runs.h"
#include "conformance/cases/row_invariance.h"
#include "conformance/cases/sampler_exact.h"
#include "conformance/cases/text_exact.h"

namespace hallmark {

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kL0:
      return "L0";
    case Level::kL1:
      return "L1";
    case Level::kL2:
      return "L2";
  }
  return "L0";
}

std::optional<Level> ParseLevel(std::string_view name) {
  for (const Level level : {Level::kL0, Level::kL1, Level::kL2}) {
    if (LevelName(level) == name) return level;
  }
  return std::nullopt;
}

Status AddLevelCases(Level level, const CaseSubject& subject, CaseRegistry& registry) {
  switch (level) {
    case Level::kL0:
      return AddFormatCases(subject, registry);
    case Level::kL1:
      TRY(AddDecodeExactCases(subject, registry));
      TRY(AddTextExactCases(subject, registry));
      TRY(AddSamplerExactCases(subject, registry));
      return AddLinearRowCases(subject, registry);
    case Level::kL2: {
      // Both clauses look at the same runs of one prompt.
      auto runs = std::make_shared<PromptRuns>(subject);
      TRY(AddForwardRowCases(runs, registry));
      return AddChunkedEqualsWholeCases(runs, registry);
    }
  }
  return {};
}

}  // namespace hallmark
