// SPDX-License-Identifier: Apache-2.0
// Inspection: what a checkpoint holds, from headers alone: linears with widths and codebooks, plain
// tensors, parts never loaded, and bytes and bits a weight by category. No data page is read beyond
// codebook markers, so a checkpoint whose files are sparse inspects like a real one.
#ifndef HALLMARK_TOOLS_HALLMARK_INSPECTION_H_
#define HALLMARK_TOOLS_HALLMARK_INSPECTION_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/format/checkpoint.h"
#include "engine/format/inventory.h"

namespace hallmark {

struct LinearFacts {
  const LinearSource* source = nullptr;
  std::string role;      // "layers.3.attention.q_gate", "head"
  std::string category;  // "attention", "delta_net", "mlp", "head"
  uint64_t bytes = 0;    // all its tensors; a marker's four bytes included
};

struct CategoryFacts {
  std::string name;
  uint64_t weights = 0;  // of the model, without padding
  uint64_t bytes = 0;
  double bits_per_weight() const {
    return weights == 0 ? 0.0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
  }
};

struct Inspection {
  std::vector<LinearFacts> linears;      // layers first, the head last
  std::vector<const TensorView*> plain;  // everything else that is used
  std::vector<CategoryFacts> categories;
};

// Pointers point into `inventory`, which must outlive the result.
Inspection Inspect(const CheckpointInventory& inventory);

// Schema: receipts/schemas/inspect.v1.schema.json.
nlohmann::json InspectionJson(const Inspection& inspection, const Checkpoint& checkpoint,
                              const CheckpointInventory& inventory);
// The same for people: groups of equal linears on one line each.
std::string InspectionText(const Inspection& inspection, const Checkpoint& checkpoint,
                           const CheckpointInventory& inventory);

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_HALLMARK_INSPECTION_H_
