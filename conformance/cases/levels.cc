// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/levels.h"

#include <algorithm>
#include <memory>

#include "conformance/cases/chunked_equals_whole.h"
#include "conformance/cases/concurrent_equals_solo.h"
#include "conformance/cases/counters_zero.h"
#include "conformance/cases/decode_exact.h"
#include "conformance/cases/drafted_equals_undrafted.h"
#include "conformance/cases/format_cases.h"
#include "conformance/cases/graph_equals_eager.h"
#include "conformance/cases/mapped_equals_device.h"
#include "conformance/cases/prompt_runs.h"
#include "conformance/cases/resumed_equals_fresh.h"
#include "conformance/cases/row_invariance.h"
#include "conformance/cases/sampler_exact.h"
#include "conformance/cases/scratch_clean.h"
#include "conformance/cases/slice_equals_parent.h"
#include "conformance/cases/text_exact.h"
#include "conformance/cases/windows.h"

namespace hallmark {

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kL0:
      return "L0";
    case Level::kL1:
      return "L1";
    case Level::kL2:
      return "L2";
    case Level::kL3:
      return "L3";
  }
  return "L0";
}

std::optional<Level> ParseLevel(std::string_view name) {
  for (const Level level : kLevels) {
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
      TRY(AddChunkedEqualsWholeCases(runs, registry));
      return AddScratchCleanCases(subject, registry);
    }
    case Level::kL3: {
      auto runs = std::make_shared<LaneRuns>(subject);
      TRY(AddWindowCases(runs, registry));
      TRY(AddDraftedEqualsUndraftedCases(runs, registry));
      TRY(AddCopyGateNeutralCases(runs, registry));
      TRY(AddResumedEqualsFreshCases(runs, registry));
      TRY(AddConcurrentEqualsSoloCases(runs, registry));
      TRY(AddFailureIsolationCases(runs, registry));
      return AddSliceEqualsParentCases(subject, registry);
    }
  }
  return {};
}

Status AddBackendCases(Level level, std::string_view backend, const CaseSubject& subject,
                       CaseRegistry& registry) {
  if (std::ranges::find(kBackendsWithCases, backend) == std::end(kBackendsWithCases)) return {};
  switch (level) {
    case Level::kL1:
      TRY(AddCountersZeroCases(subject, registry));
      return AddMappedEqualsDeviceCases(subject, registry);
    case Level::kL2:
      return AddGraphEqualsEagerCases(subject, registry);
    default:
      return {};
  }
}

}  // namespace hallmark
