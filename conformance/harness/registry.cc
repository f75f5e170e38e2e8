// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/registry.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace hallmark {
namespace {

Outcome OutcomeOf(Code code) {
  if (code == Code::kUnsupported) return Outcome::kNotSupported;
  if (code == Code::kResource) return Outcome::kResourceError;
  return Outcome::kHarnessError;
}

}  // namespace

Status CaseRegistry::Add(std::string clause, std::string case_name, CaseFunction function) {
  if (clause.empty() || case_name.empty() || function == nullptr) {
    return Fail(Code::kMalformed, "a case needs a clause, a name and a function");
  }
  Case added{std::move(clause), std::move(case_name), std::move(function)};
  const auto key = [](const Case& c) { return std::tie(c.clause, c.name); };
  const auto at = std::lower_bound(cases_.begin(), cases_.end(), added,
                                   [&](const Case& a, const Case& b) { return key(a) < key(b); });
  if (at != cases_.end() && key(*at) == key(added)) {
    return Fail(Code::kMalformed, "case " + added.clause + "/" + added.name + " is there already");
  }
  cases_.insert(at, std::move(added));
  return {};
}

std::vector<Row> CaseRegistry::Run(std::string_view prefix,
                                   const std::function<void(std::string_view)>& before) const {
  std::vector<Row> rows;
  for (const Case& item : cases_) {
    const std::string name = item.clause + "/" + item.name;
    if (!name.starts_with(prefix)) continue;
    if (before) before(name);
    Result<Row> result = item.function();
    Row row;
    if (result.has_value()) {
      row = WithoutVacuousPass(*std::move(result));
    } else {
      row.outcome = OutcomeOf(result.error().code);
      row.detail = result.error().ToString();
    }
    row.clause = item.clause;
    row.case_name = item.name;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> CaseRegistry::Names() const {
  std::vector<std::string> names;
  for (const Case& item : cases_) names.push_back(item.clause + "/" + item.name);
  return names;
}

}  // namespace hallmark
