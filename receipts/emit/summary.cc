// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/summary.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "engine/base/check.h"
#include "engine/base/json.h"
#include "receipts/emit/embedded.h"

namespace hallmark {
namespace {

struct ClauseTally {
  size_t cases = 0;
  size_t passed = 0;
  uint64_t values = 0;  // bits compared, where bits were compared
};

std::map<std::string, ClauseTally> TallyOf(const std::vector<Row>& rows) {
  std::map<std::string, ClauseTally> tallies;
  for (const Row& row : rows) {
    ClauseTally& tally = tallies[row.clause];
    ++tally.cases;
    if (row.outcome == Outcome::kPass) ++tally.passed;
    const auto values = row.counts.find("values");
    if (values != row.counts.end()) tally.values += values->second;
  }
  return tallies;
}

// The clause's own words, from the contract this build carries.
std::map<std::string, std::string> Statements() {
  auto contract = ParseJson(ContractText(), "docs/contract/clauses.json");
  CHECK(contract.has_value());
  std::map<std::string, std::string> statements;
  for (const Json& clause : (*contract)["clauses"]) {
    statements[clause.value("id", "")] = clause.value("statement", "");
  }
  return statements;
}

std::string VerdictLine(const Verdict& verdict) {
  switch (ExitCode(verdict.outcome)) {
    case 0:
      return "conforming: every case of this level is there, and every one passed";
    case 1:
      return "NOT conforming";
    default:
      return "could not decide";
  }
}

}  // namespace

std::string SummaryText(const SummaryFacts& facts, const ReceiptCore& core,
                        const std::string& core_digest, const Verdict& verdict) {
  std::string text = fmt::format("{} on {}, level {}, {} keys and values: {} cases in {:.1f} s\n",
                                 facts.checkpoint, facts.subject, LevelName(core.level), core.kv,
                                 core.rows.size(), facts.seconds);
  text += fmt::format("Verdict: {}\n\n", VerdictLine(verdict));

  const auto statements = Statements();
  for (const auto& [clause, tally] : TallyOf(core.rows)) {
    text +=
        fmt::format("  {:<4} {:<21} {} of {} cases", tally.passed == tally.cases ? "pass" : "FAIL",
                    clause, tally.passed, tally.cases);
    if (tally.values > 0) text += fmt::format(", {} values compared", tally.values);
    const auto statement = statements.find(clause);
    text += "\n";
    if (statement != statements.end()) text += "       " + statement->second + "\n";
  }
  for (const Row& row : core.rows) {
    if (row.outcome == Outcome::kPass) continue;
    text += fmt::format("  {} {}/{}: {}\n", OutcomeName(row.outcome), row.clause, row.case_name,
                        row.detail.empty() ? "no reason given" : row.detail);
  }
  for (const std::string& name : verdict.missing) {
    text += fmt::format("  missing {}: the level needs it\n", name);
  }

  text +=
      "\nWhat this does not show: inputs other than the listed cases, other machines (compare "
      "core\n"
      "digests for that), speed, or how good the model's answers are.";
  const bool golden = TallyOf(core.rows).contains("model-golden");
  if (!golden && core.level >= Level::kL2) {  // lower levels compare no logits at all
    text +=
        "\nNo reference logits are published for this checkpoint, so nothing here compares its\n"
        "numbers with another engine's: that they are exact against themselves is what was shown.";
  }
  text += fmt::format("\n\narithmetic   {}\ncore digest  {}\n", core.arithmetic, core_digest);
  return text;
}

}  // namespace hallmark
