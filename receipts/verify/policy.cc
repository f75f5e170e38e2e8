// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/policy.h"

#include <nlohmann/json.hpp>

#include "engine/base/json.h"
#include "engine/base/sha256.h"
#include "receipts/verify/knowledge.h"

namespace hallmark::verify {

Result<Policy> ParsePolicy(const Knowledge& knowledge, std::string_view text,
                           const std::string& file) {
  const Json json = TRY(ParseJson(text, file));
  TRY(CheckShape(knowledge.policy_schema, json, file));
  Policy policy{.name = json["name"].get<std::string>(),
                .sha256 = Sha256Hex(text),
                .level = json["level"].get<std::string>(),
                .must_pass = json["must_pass"].get<std::vector<std::string>>(),
                .clauses = json["clauses"].get<std::vector<std::string>>(),
                .arithmetic = json["arithmetic"].get<std::vector<std::string>>(),
                .kv = json["kv"].get<std::set<std::string>>(),
                .needs_drafter = json["drafter"] == "required"};
  if (knowledge.RankOf(policy.level) < 0) {
    return Fail(Code::kMalformed, "unknown level " + policy.level,
                {.file = file, .pointer = "/level"});
  }
  for (size_t i = 0; i < policy.must_pass.size(); ++i) {
    const int rank = knowledge.RankOf(policy.must_pass[i]);
    if (rank < 0 || rank > knowledge.RankOf(policy.level)) {
      return Fail(Code::kMalformed,
                  "unknown level " + policy.must_pass[i] + ", or one above the policy's own",
                  {.file = file, .pointer = Below("/must_pass", i)});
    }
  }
  const auto check = [&](const std::vector<std::string>& clauses, const std::string& at) -> Status {
    for (size_t i = 0; i < clauses.size(); ++i) {
      if (!knowledge.clauses.contains(clauses[i])) {
        return Fail(Code::kMalformed, "unknown clause " + clauses[i],
                    {.file = file, .pointer = Below(at, i)});
      }
    }
    return {};
  };
  TRY(check(policy.clauses, "/clauses"));
  if (json.contains("backends")) {
    policy.backends = json["backends"].get<std::map<std::string, std::vector<std::string>>>();
    for (const auto& [backend, clauses] : policy.backends) {
      TRY(check(clauses, Below("/backends", backend)));
    }
  }
  return policy;
}

}  // namespace hallmark::verify
