// SPDX-License-Identifier: Apache-2.0
// Policy: what a receipt must show to be accepted, as data (receipts/policies). The four that are
// built in are named after their levels; anyone may write another.
#ifndef HALLMARK_RECEIPTS_VERIFY_POLICY_H_
#define HALLMARK_RECEIPTS_VERIFY_POLICY_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace hallmark::verify {

class JsonSchema;
struct Knowledge;

struct Policy {
  std::string name;
  std::string sha256;                  // of its text
  std::string level;                   // the level a receipt must reach
  std::vector<std::string> must_pass;  // levels whose lists are demanded
  std::vector<std::string> clauses;    // each needs at least one row that passed
  // Backend to the clauses that its receipts must show besides.
  std::map<std::string, std::vector<std::string>> backends;
  std::vector<std::string> arithmetic;  // ids; a backend alone stands for this build's id of it
  std::set<std::string> kv;
  bool needs_drafter = false;
};

// kMalformed with a pointer for a text that does not fit receipts/schemas/policy.v1.schema.json or
// names a level or clause that this build does not know.
Result<Policy> ParsePolicy(const Knowledge& knowledge, std::string_view text,
                           const std::string& file);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_POLICY_H_
