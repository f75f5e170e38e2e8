// SPDX-License-Identifier: Apache-2.0
// The verdict in plain words. Everything that comes from a receipt, a policy or a file's name
// passes through ShownText: none may speak to the terminal.
#include <fmt/format.h>

#include <algorithm>

#include "receipts/verify/verdict.h"

namespace hallmark::verify {
namespace {

constexpr size_t kMostReasons = 12;
constexpr size_t kMostName = 4096;

std::string Headline(const ReceiptVerdict& verdict) {
  const std::string_view word = ResultWord(verdict.outcome);
  if (verdict.outcome == Outcome::kPass) {
    return fmt::format("{} at {} under policy {}: {}\n", word, verdict.level_reached,
                       ShownText(verdict.policy), ShownText(verdict.file, kMostName));
  }
  if (verdict.outcome == Outcome::kWaived) {
    return fmt::format("{} under policy {}, which is no pass: {}\n", word,
                       ShownText(verdict.policy), ShownText(verdict.file, kMostName));
  }
  return fmt::format("{}: {}\n", word, ShownText(verdict.file, kMostName));
}

}  // namespace

std::string VerdictText(const ReceiptVerdict& verdict) {
  std::string text = Headline(verdict);
  if (!verdict.core_sha256.empty()) text += fmt::format("  core digest  {}\n", verdict.core_sha256);
  for (size_t i = 0; i < std::min(kMostReasons, verdict.reasons.size()); ++i) {
    const Reason& reason = verdict.reasons[i];
    text += fmt::format("  {}{}{}: expected {}, found {}\n", reason.code,
                        reason.pointer.empty() ? "" : " at ", ShownText(reason.pointer),
                        reason.expected, reason.found);
  }
  if (verdict.reasons_found > kMostReasons) {
    text += fmt::format("  and {} more\n", verdict.reasons_found - kMostReasons);
  }
  for (const Waiver& waiver : verdict.waived) {
    text += fmt::format("  waived until {}: {} ({})\n", waiver.expires, waiver.case_name,
                        ShownText(waiver.reason));
  }
  for (const auto& [clause, tally] : verdict.clauses) {
    text += fmt::format("  {:<26}", clause);
    for (const auto& [outcome, rows] : tally) text += fmt::format(" {} {}", rows, outcome);
    text += '\n';
  }
  if (verdict.signature == "valid") text += "  signature    valid\n";
  if (verdict.signature == "unchecked") {
    text += "  signature    not checked: no --public-key was given\n";
  }
  return text;
}

}  // namespace hallmark::verify
