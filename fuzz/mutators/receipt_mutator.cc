// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutators/receipt_mutator.h"

#include <nlohmann/json.hpp>

#include "engine/base/json.h"
#include "engine/base/sha256.h"

namespace hallmark::fuzz {
namespace {

// Doubled keys and numbers beyond the parser are left to the text as it stands.
void Seal(Json& statement) {
  if (!statement.is_object() || !statement.contains("predicate")) return;
  Json& predicate = statement["predicate"];
  if (!predicate.is_object()) return;
  for (const char* part : {"core", "context"}) {
    if (predicate.contains(part)) {
      predicate[std::string(part) + "_sha256"] = Sha256Hex(CanonicalJson(predicate[part]));
    }
  }
}

}  // namespace

std::string MutateReceipt(std::string text, Mutation& mutation) {
  std::string made = MutateJson(std::move(text), mutation);
  const size_t choice = mutation.Below(8);
  if (choice == 0) return made;
  auto statement = ParseJson(made, "");
  if (!statement.has_value()) return made;
  if (choice > 2) Seal(*statement);
  return statement->dump() + "\n";
}

}  // namespace hallmark::fuzz
