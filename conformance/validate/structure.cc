// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/structure.h"

#include <nlohmann/json.hpp>

#include "engine/format/checkpoint.h"
#include "engine/format/inventory.h"

namespace hallmark {

Result<StepReport> ValidateStructure(const StructureOptions& options,
                                     const StepProgress& progress) {
  StepReport report{.step = "structure"};
  if (progress) progress("headers", 0, 1);
  const auto refuse = [&report](const Error& error) {
    report.findings.push_back({.severity = Severity::kError,
                               .clause = "format-reject",
                               .check = "checkpoint-refused",
                               .error = error});
  };
  const auto checkpoint = Checkpoint::Open(options.folder);
  if (!checkpoint.has_value()) {
    refuse(checkpoint.error());
    return report;
  }
  const auto inventory = TakeInventory(*checkpoint);
  if (!inventory.has_value()) refuse(inventory.error());
  return report;
}

}  // namespace hallmark
