// SPDX-License-Identifier: Apache-2.0
// Configs and tensors of a model's or a drafter's folder under validation: the config, up to three
// statements about the quantization, tensor_storage, and every tensor in its role. Every fault that
// does not follow from another. Clauses: format-accept, format-reject. Not the text side
// (text_files.h).
#ifndef HALLMARK_CONFORMANCE_VALIDATE_MODEL_FILES_H_
#define HALLMARK_CONFORMANCE_VALIDATE_MODEL_FILES_H_

#include <memory>
#include <optional>

#include "conformance/validate/checks.h"
#include "conformance/validate/watched_folder.h"
#include "conformance/validate/weights.h"
#include "engine/base/json.h"
#include "engine/format/drafter_config.h"
#include "engine/format/inventory.h"
#include "engine/format/model_config.h"

namespace hallmark {

struct ModelFiles {
  std::unique_ptr<Json> document;                // config.json; null: not to be had
  ModelConfigReading config;                     // empty without a document
  std::optional<CheckpointInventory> inventory;  // of a model without any fault of a tensor
};

// Reads config.json and holds everything but the text side against it.
ModelFiles ReadModelFiles(WatchedFolder& folder, const Weights& weights, FindingList* findings);

struct DrafterFiles {
  std::optional<DrafterConfig> config;  // absent: at fault
  int64_t used_tensors = 0;
};

// The same for a drafter's folder. `target` is the model's config where its sizes are known.
DrafterFiles ReadDrafterFiles(WatchedFolder& folder, const Weights& weights,
                              const ModelConfig* target, FindingList* findings);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_MODEL_FILES_H_
