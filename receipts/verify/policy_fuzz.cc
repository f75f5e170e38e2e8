// SPDX-License-Identifier: Apache-2.0
// ParsePolicy takes any bytes; what it accepts names levels and clauses of this build alone.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "receipts/verify/knowledge.h"
#include "receipts/verify/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hallmark::verify;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Knowledge& knowledge = BuiltInKnowledge();
  const auto policy = ParsePolicy(knowledge, bytes, "fuzz");
  if (!policy.has_value()) {
    if (policy.error().where.file != "fuzz") std::abort();
    return 0;
  }
  const int rank = knowledge.RankOf(policy->level);
  if (rank < 0 || policy->sha256.size() != 64) std::abort();
  for (const std::string& level : policy->must_pass) {
    if (knowledge.RankOf(level) < 0 || knowledge.RankOf(level) > rank) std::abort();
  }
  for (const std::string& clause : policy->clauses) {
    if (!knowledge.clauses.contains(clause)) std::abort();
  }
  return 0;
}
