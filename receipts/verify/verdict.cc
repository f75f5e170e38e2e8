// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/verdict.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "receipts/verify/knowledge.h"

namespace hallmark::verify {
namespace {

Json ReceiptJson(const ReceiptVerdict& verdict) {
  Json reasons = Json::array();
  for (const Reason& reason : verdict.reasons) {
    reasons.push_back({{"code", reason.code},
                       {"pointer", ShownText(reason.pointer)},
                       {"expected", reason.expected},
                       {"found", reason.found}});
  }
  Json waived = Json::array();
  for (const Waiver& waiver : verdict.waived) {
    waived.push_back({{"case", waiver.case_name},
                      {"expires", waiver.expires},
                      {"reason", ShownText(waiver.reason)}});
  }
  Json clauses = Json::object();
  for (const auto& [clause, tally] : verdict.clauses) clauses[clause] = tally;
  return {{"file", verdict.file},
          {"sha256", verdict.sha256},
          {"core_sha256", verdict.core_sha256},
          {"level_claimed", ShownText(verdict.level_claimed)},
          {"level_reached", verdict.level_reached},
          {"policy", {{"name", verdict.policy}, {"sha256", verdict.policy_sha256}}},
          {"result", ResultWord(verdict.outcome)},
          {"outcome", OutcomeName(verdict.outcome)},
          {"reasons", reasons},
          {"reasons_found", verdict.reasons_found},
          {"clauses", clauses},
          {"waived", waived},
          {"signature", verdict.signature}};
}

}  // namespace

ReceiptVerdict Unreadable(const std::string& file, const std::string& why) {
  return {.file = file,
          .outcome = Outcome::kHarnessError,
          .reasons = {{"unreadable", "", "a file that can be read", ShownText(why)}},
          .reasons_found = 1};
}

std::string_view ResultWord(Outcome outcome) {
  if (outcome == Outcome::kPass) return "PASSED";
  if (outcome == Outcome::kWaived) return "WAIVED";
  return outcome >= Outcome::kFail ? "DENIED" : "UNDECIDED";
}

Json VerdictJson(std::span<const ReceiptVerdict> verdicts) {
  Json receipts = Json::array();
  Outcome worst = verdicts.empty() ? Outcome::kHarnessError : Outcome::kPass;
  for (const ReceiptVerdict& verdict : verdicts) {
    receipts.push_back(ReceiptJson(verdict));
    worst = std::max(worst, verdict.outcome);
  }
  const Knowledge& knowledge = BuiltInKnowledge();
  return {{"schema", "urn:hallmark:schema:verdict:v1"},
          {"verifier",
           {{"name", "hallmark"},
            {"version", HALLMARK_VERSION},
            {"contract", knowledge.contract_sha256}}},
          {"result", ResultWord(worst)},
          {"receipts", receipts}};
}

int ExitCodeOfAll(std::span<const ReceiptVerdict> verdicts) {
  Outcome worst = verdicts.empty() ? Outcome::kHarnessError : Outcome::kPass;
  for (const ReceiptVerdict& verdict : verdicts) worst = std::max(worst, verdict.outcome);
  return ExitCode(worst);
}

}  // namespace hallmark::verify
