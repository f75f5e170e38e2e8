// SPDX-License-Identifier: Apache-2.0
// Row: what one case of a clause showed, in the form a receipt carries. Not for running cases
// (registry.h) or for judging a whole receipt.
#ifndef HALLMARK_CONFORMANCE_HARNESS_ROW_H_
#define HALLMARK_CONFORMANCE_HARNESS_ROW_H_

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "conformance/harness/outcome.h"

namespace hallmark {

struct Row {
  std::string clause;     // docs/contract
  std::string case_name;  // built from its parameters, e.g. "prompt=0,kv=bf16"
  Outcome outcome = Outcome::kHarnessError;
  std::string expected;                    // SHA-256 of what must come out; may be empty
  std::string actual;                      // SHA-256 of what came out; may be empty
  std::map<std::string, uint64_t> counts;  // what was compared; proves the case was not vacuous
  std::string detail;                      // one sentence for people when it did not pass
};

// Turns a pass that shows nothing into kHarnessError: no counts, a count of zero, or digests that
// differ. Leaves any other outcome alone.
Row WithoutVacuousPass(Row row);

// Object with members actual, case, clause, counts, expected, outcome; `detail` only if not empty.
nlohmann::json RowToJson(const Row& row);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_ROW_H_
