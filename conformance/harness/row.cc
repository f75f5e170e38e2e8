// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/row.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace hallmark {

Row WithoutVacuousPass(Row row) {
  if (row.outcome != Outcome::kPass) return row;
  if (row.counts.empty()) row.detail = "the case counted nothing";
  for (const auto& [name, count] : row.counts) {
    if (count == 0) row.detail = "the count of " + name + " is zero";
  }
  if (row.expected != row.actual) row.detail = "the case passed although its digests differ";
  if (!row.detail.empty()) row.outcome = Outcome::kHarnessError;
  return row;
}

nlohmann::json RowToJson(const Row& row) {
  nlohmann::json json = {{"actual", row.actual},     {"case", row.case_name},
                         {"clause", row.clause},     {"counts", row.counts},
                         {"expected", row.expected}, {"outcome", OutcomeName(row.outcome)}};
  if (!row.detail.empty()) json["detail"] = row.detail;
  return json;
}

}  // namespace hallmark
