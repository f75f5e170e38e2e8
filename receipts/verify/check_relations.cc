// SPDX-License-Identifier: Apache-2.0
// Counts of a passed row against the parameters in its case's name and against each other, and
// passed rows against those that must have the same digest or the same quotient of two counts.
#include <charconv>
#include <nlohmann/json.hpp>

#include "receipts/verify/receipt.h"

namespace hallmark::verify {
namespace {

// Wide, so that a hostile count cannot wrap to the right sum or product.
using Wide = unsigned __int128;

// The parameter of a case "kept=100,tail=17"; empty without it.
std::string ParameterOf(const std::string& case_name, const std::string& name) {
  const std::string text = "," + case_name + ",";
  const size_t at = text.find("," + name + "=");
  if (at == std::string::npos) return "";
  const size_t from = at + name.size() + 2;
  return text.substr(from, text.find(',', from) - from);
}

std::optional<uint64_t> NumberOf(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// `text` with each {name} filled in from the case's name, and {a+b} with the sum of two.
std::string Filled(std::string text, const std::string& case_name) {
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open)) {
    const size_t close = text.find('}', open);
    const std::string name = text.substr(open + 1, close - open - 1);
    const size_t plus = name.find('+');
    std::string value = ParameterOf(case_name, name.substr(0, plus));
    if (plus != std::string::npos) {
      const auto one = NumberOf(value);
      const auto other = NumberOf(ParameterOf(case_name, name.substr(plus + 1)));
      value = one && other ? std::to_string(*one + *other) : case_name;
    }
    text.replace(open, close - open + 1, value);
    open += value.size();
  }
  return text;
}

class Relations {
 public:
  explicit Relations(Findings& findings) : findings_(findings) {}

  void Of(const ReceiptRow& row, const RowRule& rule) {
    row_ = &row;
    counts_ = &(*row.json)["counts"];
    for (const auto& [count, parameter] : rule.parameters) CheckParameter(count, parameter);
    for (const auto& [less, more] : rule.fewer) {
      const auto a = Count(less), b = Count(more);
      if (a && b && *a >= *b) Add(less, "fewer than " + std::to_string(*b) + " " + more);
    }
    for (const auto& [less, more] : rule.at_most) {
      const auto a = Count(less), b = Count(more);
      if (a && b && *a > *b) Add(less, "at most " + std::to_string(*b) + " " + more);
    }
    for (const CountSum& sum : rule.sums) CheckSum(sum);
    for (const CountQuotient& quotient : rule.quotients) CheckQuotient(quotient);
    if (!rule.same_digest.empty()) {
      CheckAlike(digests_, Filled(rule.same_digest, row.case_name),
                 (*row.json)["expected"].get<std::string>(), "/expected");
    }
  }

 private:
  // Null for one that is missing, which has been told.
  std::optional<uint64_t> Count(const std::string& name) const {
    const auto found = counts_->find(name);
    if (found == counts_->end()) return std::nullopt;
    return found->get<uint64_t>();
  }

  void Add(const std::string& count, std::string expected) {
    findings_.Add("row-count-contradiction", row_->pointer + Below("/counts", count),
                  std::move(expected), (*counts_)[count].dump());
  }

  void CheckParameter(const std::string& count, const std::string& parameter) {
    if (!Count(count)) return;
    const std::string wanted = ParameterOf(row_->case_name, parameter);
    if ((*counts_)[count].dump() != wanted) {
      Add(count, parameter + "=" + ShownText(wanted) + " of the case's name");
    }
  }

  void CheckSum(const CountSum& sum) {
    const auto total = Count(sum.total);
    Wide wanted = sum.more;
    std::string words = std::to_string(sum.more);
    for (const std::string& part : sum.parts) {
      const auto value = part.starts_with('=')
                             ? NumberOf(ParameterOf(row_->case_name, part.substr(1)))
                             : Count(part);
      if (!value) return;
      wanted += *value;
      words += " + " + std::to_string(*value) + " " + part.substr(part.starts_with('=') ? 1 : 0);
    }
    if (!total || *total == wanted || (!sum.exact && *total > wanted)) return;
    Add(sum.total, (sum.exact ? "" : "at least ") + words);
  }

  void CheckQuotient(const CountQuotient& quotient) {
    const auto of = Count(quotient.of), by = Count(quotient.by);
    if (!of || !by || *by == 0) return;
    if (*of % *by != 0) return Add(quotient.of, "a multiple of " + std::to_string(*by));
    const std::string value = std::to_string(*of / *by);
    if (!quotient.parameter.empty()) {
      const std::string wanted = ParameterOf(row_->case_name, quotient.parameter);
      if (value == wanted) return;
      return Add(quotient.of, quotient.parameter + "=" + ShownText(wanted) +
                                  " of the case's name for each of " + std::to_string(*by));
    }
    if (quotient.alike.empty()) return;
    CheckAlike(quotients_, quotient.alike, value, Below("/counts", quotient.of));
  }

  // What the first row of a word showed, the others must show too.
  using Shown = std::map<std::string, std::pair<const ReceiptRow*, std::string>>;
  void CheckAlike(Shown& first, const std::string& word, const std::string& value,
                  const std::string& below) {
    const auto [at, fresh] = first.emplace(word, std::pair(row_, value));
    if (fresh || at->second.second == value) return;
    findings_.Add("row-unlike", row_->pointer + below,
                  at->second.second + ", as " + ShownText(at->second.first->name) + " shows",
                  value);
  }

  Findings& findings_;
  const ReceiptRow* row_ = nullptr;
  const Json* counts_ = nullptr;
  Shown digests_;
  Shown quotients_;
};

}  // namespace

void CheckRelations(const Knowledge& knowledge, const Receipt& receipt, Findings& findings) {
  Relations relations(findings);
  for (const ReceiptRow& row : receipt.rows) {
    const RowRule* rule = knowledge.RuleOf(row.clause, row.case_name);
    if (rule != nullptr && row.outcome == Outcome::kPass) relations.Of(row, *rule);
  }
}

}  // namespace hallmark::verify
