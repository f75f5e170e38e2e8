// SPDX-License-Identifier: Apache-2.0
// A receipt against the published ones: rows that no checkpoint changes, and all that a golden
// model gives under settings that were published. A receipt of any other checkpoint has only the
// first.
#include <nlohmann/json.hpp>

#include "receipts/verify/receipt.h"

namespace hallmark::verify {
namespace {

// A passed row must be the published row; of any other outcome the truth must be the published one.
void CheckRow(const ReceiptRow& row, const Json& published, Findings& findings) {
  for (const char* member : {"expected", "actual", "counts"}) {
    const Json& found = (*row.json)[member];
    const bool decides =
        row.outcome == Outcome::kPass || (std::string_view(member) == "expected" && found != "");
    if (!decides || found == published[member]) continue;
    if (std::string_view(member) != "counts") {
      findings.Add("row-not-as-published", Below(row.pointer, member), Shown(published[member]),
                   Shown(found));
      continue;
    }
    findings.Add("row-not-as-published", row.pointer + "/counts",
                 ShownText(published[member].dump()), ShownText(found.dump()));
  }
}

}  // namespace

void CheckPins(const Knowledge& knowledge, const Receipt& receipt, Findings& findings) {
  const auto shared = knowledge.shared_rows.find(receipt.arithmetic);
  if (shared != knowledge.shared_rows.end()) {
    for (const ReceiptRow& row : receipt.rows) {
      const auto found = shared->second.find(row.name);
      if (found != shared->second.end()) CheckRow(row, *found->second, findings);
    }
  }
  for (const Pin& pin : knowledge.pins) {
    const Json& settings = (*receipt.core)["settings"];
    bool same_model = false;
    for (const GoldenModel* model : receipt.golden) {
      same_model = same_model || model->name == pin.model;
    }
    if (!same_model || pin.arithmetic != receipt.arithmetic ||
        pin.settings->at("kv") != settings["kv"]) {
      continue;
    }
    const bool same_drafting = pin.drafter == receipt.drafter && *pin.settings == settings;
    for (const ReceiptRow& row : receipt.rows) {
      const auto found = pin.rows.find(row.name);
      if (found == pin.rows.end()) continue;
      // Below the first level that needs a drafter, no row depends on one.
      const int rank = knowledge.LevelOfCase(row.name);
      const Policy* policy =
          rank < 0 ? nullptr : knowledge.PolicyOf(knowledge.levels[static_cast<size_t>(rank)].name);
      const bool undrafted = policy != nullptr && !policy->needs_drafter;
      if (undrafted || same_drafting) CheckRow(row, *found->second, findings);
    }
    if (!same_drafting || pin.level != receipt.level) continue;
    if ((*receipt.core)["prompts"] != *pin.prompts) {
      findings.Add("prompts-not-as-published", "/predicate/core/prompts",
                   ShownText(pin.prompts->dump()), ShownText((*receipt.core)["prompts"].dump()));
    }
    if ((*receipt.core)["checkpoint"]["sha256"] == pin.checkpoint) {
      findings.Equal(
          "core-not-as-published", "/predicate/core_sha256", pin.core_sha256,
          (*receipt.statement)["predicate"]["core_sha256"].get_ref<const std::string&>());
    }
  }
}

}  // namespace hallmark::verify
