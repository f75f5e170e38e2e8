// SPDX-License-Identifier: Apache-2.0
// What can come of a case. Only kPass counts as conforming; when outcomes meet, the worst wins.
// Not for tool exit codes, except through ExitCode.
#ifndef HALLMARK_CONFORMANCE_HARNESS_OUTCOME_H_
#define HALLMARK_CONFORMANCE_HARNESS_OUTCOME_H_

#include <optional>
#include <span>
#include <string_view>

namespace hallmark {

// In order of severity.
enum class Outcome {
  kPass,
  kWaived,         // failed, and a waiver names it
  kNotSupported,   // the subject does not offer it
  kResourceError,  // memory or another budget ran out
  kTimeout,
  kHarnessError,  // our own check could not decide
  kFail,          // compared, and wrong
  kCrash,
};

// The word used in receipts: "pass", "waived", "notSupported" ...
std::string_view OutcomeName(Outcome outcome);
std::optional<Outcome> ParseOutcome(std::string_view name);

// The most severe of all; kHarnessError when there are none, since nothing was shown.
Outcome Worst(std::span<const Outcome> outcomes);

// 0 conforming (pass), 1 non-conforming (fail, crash), 3 could not decide (everything else).
int ExitCode(Outcome outcome);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_OUTCOME_H_
