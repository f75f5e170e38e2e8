// SPDX-License-Identifier: Apache-2.0
// Rows one by one and against each other: names, order, digests, counts, allowances.
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "receipts/verify/receipt.h"

namespace hallmark::verify {
namespace {

const std::string& Text(const Json& json) { return json.get_ref<const std::string&>(); }

// Receipts hold billionths, rounded up.
uint64_t Billionths(double value) { return static_cast<uint64_t>(std::ceil(value * 1e9)); }

class RowCheck {
 public:
  RowCheck(const Knowledge& knowledge, const Receipt& receipt, const ReceiptRow& row,
           Findings& findings)
      : knowledge_(knowledge),
        receipt_(receipt),
        row_(row),
        counts_((*row.json)["counts"]),
        rule_(knowledge.RuleOf(row.clause, row.case_name)),
        findings_(findings) {}

  void Run() {
    const bool has_detail = row_.json->contains("detail");
    if (row_.outcome != Outcome::kPass) {
      if (!has_detail) Add("row-without-detail", "/detail", "why it did not pass", "nothing");
      // Waivers are the reader's, never the emitter's.
      if (row_.outcome == Outcome::kWaived) {
        Add("row-waives-itself", "/outcome", "an outcome of a run", "waived");
      }
      return;
    }
    if (has_detail) Add("row-detail-on-pass", "/detail", "nothing", Shown((*row_.json)["detail"]));
    CheckDigests();
    CheckCounts();
    CheckBounds();
    if (rule_ == nullptr) return;
    if (rule_->per_row) CheckPerRow();
  }

 private:
  void Add(const char* code, const std::string& below, std::string expected, std::string found) {
    findings_.Add(code, row_.pointer + below, std::move(expected), std::move(found));
  }

  void CheckDigests() {
    const std::string& expected = Text((*row_.json)["expected"]);
    const std::string& actual = Text((*row_.json)["actual"]);
    findings_.Equal("row-digests-differ", row_.pointer + "/actual", expected, actual);
    const bool wanted = rule_ == nullptr || rule_->bits;
    if (wanted && expected.empty()) {
      Add("row-without-digest", "/expected", "a digest of what was compared", "nothing");
    } else if (!wanted && !expected.empty()) {
      Add("row-digest-unknown", "/expected", "no digest where a tolerance decides", expected);
    }
  }

  void CheckCounts() {
    if (counts_.empty()) Add("row-counts-nothing", "/counts", "at least one count", "none");
    for (const auto& [name, count] : counts_.items()) {
      if (count.get<uint64_t>() == 0) {
        Add("row-count-zero", Below("/counts", name), "more than nothing", "0");
      }
      if (rule_ != nullptr && !IsCountOfRule(name)) {
        Add("row-count-unknown", Below("/counts", name), "a count of this clause", count.dump());
      }
    }
    if (counts_.contains("positions") && counts_.contains("values")) {
      const uint64_t positions = counts_["positions"].get<uint64_t>();
      const uint64_t values = counts_["values"].get<uint64_t>();
      if (positions != 0 && values % positions != 0) {
        Add("row-count-contradiction", "/counts/values",
            "a multiple of " + std::to_string(positions) + " positions", std::to_string(values));
      }
    }
    if (rule_ == nullptr) return;
    for (const auto& [name, least] : rule_->at_least) {
      const auto found = counts_.find(name);
      if (found == counts_.end()) {
        Add("row-count-missing", Below("/counts", name), "at least " + std::to_string(least),
            "nothing");
      } else if (found->get<uint64_t>() < least) {
        Add("row-count-low", Below("/counts", name), "at least " + std::to_string(least),
            found->dump());
      }
    }
  }

  bool IsCountOfRule(const std::string& name) const {
    if (rule_->at_least.contains(name)) return true;
    for (const CountBound& bound : rule_->bounds) {
      if (bound.allowed == name) return true;
      if (!bound.measured.empty() && GlobMatches(bound.measured, name)) return true;
    }
    return false;
  }

  void CheckBounds() {
    if (rule_ == nullptr) return;
    for (const CountBound& bound : rule_->bounds) {
      const std::string id = ToleranceId(bound.tolerance);
      const auto registered = knowledge_.tolerances.find(id);
      const auto stated = counts_.find(bound.allowed);
      const std::string at = Below("/counts", bound.allowed);
      if (registered == knowledge_.tolerances.end()) {
        Add("tolerance-unknown", at, "an entry of the register", id);
        continue;
      }
      if (stated == counts_.end()) {
        Add("row-count-missing", at, "what is allowed", "nothing");
        continue;
      }
      const uint64_t allowed = Billionths(registered->second);
      findings_.Equal("tolerance-register", row_.pointer + at, std::to_string(allowed),
                      stated->dump());
      if (bound.measured.empty()) continue;
      bool measured = false;
      for (const auto& [name, count] : counts_.items()) {
        if (name == bound.allowed || !GlobMatches(bound.measured, name)) continue;
        measured = true;
        if (count.get<uint64_t>() > allowed) {
          Add("tolerance-exceeded", Below("/counts", name), "at most " + std::to_string(allowed),
              count.dump());
        }
      }
      if (!measured) {
        Add("row-count-missing", Below("/counts", bound.measured), "what was measured", "nothing");
      }
    }
  }

  // "{model}-logits-rms-{kv}" for case "scribe-11m-exl3,run=..." is "scribe-logits-rms-bf16".
  std::string ToleranceId(std::string id) const {
    const auto fill = [&](std::string_view word, std::string_view with) {
      const size_t at = id.find(word);
      if (at != std::string::npos) id.replace(at, word.size(), with);
    };
    fill("{model}", row_.case_name.substr(0, row_.case_name.find_first_of("-,")));
    fill("{kv}", receipt_.kv);
    return id;
  }

  // "linears,rows=16": 16 rows of each linear.
  void CheckPerRow() {
    const size_t at = row_.case_name.rfind("rows=");
    if (at == std::string::npos || !counts_.contains("linears") || !counts_.contains("rows") ||
        !counts_.contains("values")) {
      return;  // a missing count has been told
    }
    uint64_t rows = 0;
    std::from_chars(row_.case_name.data() + at + 5, row_.case_name.data() + row_.case_name.size(),
                    rows);
    const uint64_t linears = counts_["linears"].get<uint64_t>();
    if (rows == 0 || counts_["rows"].get<uint64_t>() / rows != linears ||
        counts_["rows"].get<uint64_t>() % rows != 0) {
      Add("row-count-contradiction", "/counts/rows",
          std::to_string(rows) + " rows of " + std::to_string(linears) + " linears",
          counts_["rows"].dump());
    }
    if (rows != 0 && counts_["values"].get<uint64_t>() % rows != 0) {
      Add("row-count-contradiction", "/counts/values", "a multiple of " + std::to_string(rows),
          counts_["values"].dump());
    }
  }

  const Knowledge& knowledge_;
  const Receipt& receipt_;
  const ReceiptRow& row_;
  const Json& counts_;
  const RowRule* rule_;
  Findings& findings_;
};

void CheckNames(const Knowledge& knowledge, const Receipt& receipt, Findings& findings) {
  std::set<std::string> known;
  for (int rank = 0; rank <= receipt.rank; ++rank) {
    const std::vector<std::string> cases =
        knowledge.levels[static_cast<size_t>(rank)].CasesOf(receipt.backend);
    known.insert(cases.begin(), cases.end());
  }
  for (const GoldenModel* model : receipt.golden) {
    known.insert(model->cases.begin(), model->cases.end());
  }
  for (size_t i = 0; i < receipt.rows.size(); ++i) {
    const ReceiptRow& row = receipt.rows[i];
    if (!knowledge.clauses.contains(row.clause)) {
      findings.Add("row-unknown-clause", row.pointer + "/clause", "a clause of the contract",
                   ShownText(row.clause));
    } else if (!known.contains(row.name)) {
      findings.Add("row-unknown-case", row.pointer + "/case",
                   "a case of level " + receipt.level + " for this checkpoint and backend",
                   ShownText(row.case_name));
    }
    if (i == 0) continue;
    const ReceiptRow& before = receipt.rows[i - 1];
    const auto key = [](const ReceiptRow& r) { return std::tie(r.clause, r.case_name); };
    if (receipt.by_name.at(row.name) != &row) {
      findings.Add("row-duplicate", row.pointer, "each case once", ShownText(row.name));
    } else if (key(before) > key(row)) {
      findings.Add("row-order", row.pointer, "rows by clause, then case", ShownText(row.name));
    }
  }
}

// Rows that look at one thing from several sides cannot pass and disagree.
void CheckAlike(const Knowledge& knowledge, const Receipt& receipt, Findings& findings) {
  std::map<std::string, const ReceiptRow*> first;
  for (const ReceiptRow& row : receipt.rows) {
    const RowRule* rule = knowledge.RuleOf(row.clause, row.case_name);
    if (rule == nullptr || rule->alike.empty() || row.outcome != Outcome::kPass) continue;
    const auto [at, fresh] = first.emplace(rule->alike, &row);
    if (fresh) continue;
    const Json& one = *at->second->json;
    const Json& other = *row.json;
    const Json& one_counts = one["counts"];
    const Json& other_counts = other["counts"];
    bool alike = true;
    if (rule->per_row) {
      // What is compared grows with the rows; a row of each linear stays what it is.
      for (const char* name : {"linears", "rows", "values"}) {
        alike = alike && one_counts.contains(name) && other_counts.contains(name);
      }
      if (!alike) continue;  // a missing count has been told
      // Wide, so that a hostile count cannot wrap to the right product.
      using Wide = unsigned __int128;
      const auto count = [](const Json& counts, const char* name) {
        return static_cast<Wide>(counts[name].get<uint64_t>());
      };
      alike = count(one_counts, "linears") == count(other_counts, "linears") &&
              count(one_counts, "values") * count(other_counts, "rows") ==
                  count(other_counts, "values") * count(one_counts, "rows");
    } else {
      alike = one["expected"] == other["expected"] && one_counts == other_counts;
    }
    if (!alike) {
      findings.Add("row-unlike", row.pointer, "what " + ShownText(at->second->name) + " shows",
                   "other digests or counts");
    }
  }
}

}  // namespace

void CheckRows(const Knowledge& knowledge, const Receipt& receipt, Findings& findings) {
  CheckNames(knowledge, receipt, findings);
  for (const ReceiptRow& row : receipt.rows) RowCheck(knowledge, receipt, row, findings).Run();
  CheckAlike(knowledge, receipt, findings);
  CheckRelations(knowledge, receipt, findings);
}

}  // namespace hallmark::verify
