// SPDX-License-Identifier: Apache-2.0
// What can come of a case or of a receipt, as receipts spell it, and the exit code each gives. Said
// again here on purpose: a fault in the harness's own list must not excuse a receipt.
#ifndef HALLMARK_RECEIPTS_VERIFY_OUTCOME_H_
#define HALLMARK_RECEIPTS_VERIFY_OUTCOME_H_

#include <optional>
#include <string_view>

namespace hallmark::verify {

// In order of severity: where outcomes meet, the last one wins.
enum class Outcome {
  kPass,
  kWaived,
  kNotSupported,
  kResourceError,
  kTimeout,
  kHarnessError,
  kFail,
  kCrash,
};

std::string_view OutcomeName(Outcome outcome);
std::optional<Outcome> ParseOutcome(std::string_view name);

// 0 only for a pass; 1 for fail and crash; 3, could not decide, for all else, a waiver included.
int ExitCode(Outcome outcome);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_OUTCOME_H_
