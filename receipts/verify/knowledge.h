// SPDX-License-Identifier: Apache-2.0
// Knowledge: all that a verifier knows before it sees a receipt, read from the embedded documents
// and indexed. Levels, clauses, policies and rules are whatever the documents name: a new level is
// a new file in receipts/must_pass and one in receipts/policies, and its rules in rules.json.
#ifndef HALLMARK_RECEIPTS_VERIFY_KNOWLEDGE_H_
#define HALLMARK_RECEIPTS_VERIFY_KNOWLEDGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "receipts/verify/embedded.h"
#include "receipts/verify/json_schema.h"
#include "receipts/verify/policy.h"
#include "receipts/verify/prompt_rule.h"

namespace hallmark::verify {

struct GoldenModel {
  std::string name;
  std::map<std::string, std::string> files;  // name to SHA-256; all must match
  std::vector<std::string> cases;            // "clause/case"
};

struct LevelList {
  std::string name;
  std::string sha256;
  std::vector<std::string> cases;
  // Backend to the cases that its receipts hold besides, and no others.
  std::map<std::string, std::vector<std::string>> backends;
  std::vector<GoldenModel> golden_models;

  // What every receipt of a backend holds, whatever its checkpoint.
  std::vector<std::string> CasesOf(const std::string& backend) const;
};

struct GoldenFile {
  uint64_t bytes = 0;
  std::string sha256;
};

// A count that a tolerance row measured, and the count that says what was allowed.
struct CountBound {
  std::string measured;  // a glob over names of counts; empty where only the allowance is stated
  std::string allowed;
  std::string tolerance;  // register id; {model} is a model's first word, {kv} the cache type
};

// A count that others add up to: `total` is `more` and the sum of `parts`, or at least that. A part
// "=name" is the parameter of the case's name.
struct CountSum {
  std::string total;
  std::vector<std::string> parts;
  uint64_t more = 0;
  bool exact = true;
};

// A count that is a multiple of another.
struct CountQuotient {
  std::string of;
  std::string by;
  std::string parameter;  // of the case's name, which the quotient is; empty: it is nobody's
  std::string alike;      // passed rows of one word have one quotient; empty: its own
};

// What a row of some cases must hold beyond its shape.
struct RowRule {
  std::string clause;
  std::string cases;                         // a glob
  bool bits = true;                          // digests are compared; else a tolerance decides
  std::map<std::string, uint64_t> at_least;  // every count the row has, and its least value
  std::vector<CountBound> bounds;
  std::vector<std::string> vectors;  // golden files behind the row; {model} stands for a name
  std::string alike;  // passed rows of one word compare the same thing: same digests, same counts
  std::map<std::string, std::string> parameters;  // count to the parameter of the case it equals
  std::map<std::string, std::string> fewer;       // count to the count it must stay below
  std::map<std::string, std::string> at_most;     // count to the count it must not exceed
  std::vector<CountSum> sums;
  std::vector<CountQuotient> quotients;
  // Passed rows of one text have one digest. {name} is a parameter of the case, {a+b} the sum of
  // two; empty: digests of other rows say nothing.
  std::string same_digest;
  bool per_row = false;  // "rows=N" in the case's name: counts grow with N
};

// What a published receipt holds for one golden model and one setting.
struct Pin {
  std::string arithmetic;
  std::string model;
  std::string level;
  std::string checkpoint;  // sha256 of its list of files
  std::string drafter;     // the same; empty without one
  const Json* settings = nullptr;
  const Json* prompts = nullptr;
  std::string core_sha256;
  std::map<std::string, const Json*> rows;  // by "clause/case"
};

// The numeric definition of a backend.
struct Arithmetic {
  std::string definition;     // canonical text
  bool fingerprints = false;  // an id depends on the device, by the fingerprint it states
};

struct Knowledge {
  std::string contract_sha256;
  int64_t contract_version = 0;
  std::set<std::string> clauses;
  std::vector<LevelList> levels;  // lowest first
  std::string tolerances_sha256;
  std::map<std::string, double> tolerances;
  std::map<std::string, Arithmetic> arithmetics;  // by backend
  std::map<std::string, GoldenFile> golden_files;
  std::vector<RowRule> rules;
  std::vector<PromptRule> prompts;
  std::vector<std::string> samplings;     // of every receipt with a drafter
  std::shared_ptr<const Json> published;  // the document that pins point into
  // By arithmetic, then "clause/case".
  std::map<std::string, std::map<std::string, const Json*>> shared_rows;
  std::vector<Pin> pins;
  std::map<std::string, Policy> policies;
  std::map<std::string, int> case_levels;  // "clause/case" to the rank of the list that names it
  JsonSchema receipt_schema;
  JsonSchema policy_schema;
  JsonSchema waivers_schema;

  // This build's id of a backend, on a device of that fingerprint (empty: none); nullopt when the
  // backend is unknown.
  std::optional<std::string> ArithmeticId(const std::string& backend,
                                          const std::string& fingerprint) const;
  int RankOf(std::string_view level) const;               // -1 when unknown
  int LevelOfCase(const std::string& name) const;         // -1 when unknown
  const Policy* PolicyOf(const std::string& name) const;  // null when unknown
  // The rule of a case, or null: then only what holds for every row is checked.
  const RowRule* RuleOf(std::string_view clause, std::string_view case_name) const;
};

// kMalformed, kUnsupported or kNotFound when a document is missing or not what its schema says.
Result<Knowledge> ReadKnowledge(const Documents& documents);
// What this build embeds. Aborts if that cannot be read: the build is broken then.
const Knowledge& BuiltInKnowledge();

// kMalformed with the pointer of the first fault of `json` against `schema`.
Status CheckShape(const JsonSchema& schema, const Json& json, const std::string& file);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_KNOWLEDGE_H_
