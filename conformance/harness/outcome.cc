// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/outcome.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace hallmark {
namespace {

constexpr std::array<std::string_view, 8> kNames = {
    "pass", "waived", "notSupported", "resourceError", "timeout", "harnessError", "fail", "crash"};

}  // namespace

std::string_view OutcomeName(Outcome outcome) { return kNames[static_cast<size_t>(outcome)]; }

std::optional<Outcome> ParseOutcome(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

Outcome Worst(std::span<const Outcome> outcomes) {
  if (outcomes.empty()) return Outcome::kHarnessError;
  return *std::max_element(outcomes.begin(), outcomes.end());
}

int ExitCode(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return 0;
    case Outcome::kFail:
    case Outcome::kCrash:
      return 1;
    default:
      return 3;
  }
}

}  // namespace hallmark
