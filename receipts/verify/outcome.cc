// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/outcome.h"

#include <array>
#include <cstddef>

namespace hallmark::verify {
namespace {

constexpr std::array<std::string_view, 8> kWords = {
    "pass", "waived", "notSupported", "resourceError", "timeout", "harnessError", "fail", "crash"};

}  // namespace

std::string_view OutcomeName(Outcome outcome) { return kWords[static_cast<size_t>(outcome)]; }

std::optional<Outcome> ParseOutcome(std::string_view name) {
  for (size_t i = 0; i < kWords.size(); ++i) {
    if (kWords[i] == name) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

int ExitCode(Outcome outcome) {
  if (outcome == Outcome::kPass) return 0;
  return outcome >= Outcome::kFail ? 1 : 3;
}

}  // namespace hallmark::verify
