// SPDX-License-Identifier: Apache-2.0
// Checkpoint: the folder of a model (checkpoint_folder.h) with its geometry, quantization and stop
// ids read and held against each other. Not what the tensors are for: that is inventory.h. Clauses:
// format-accept, format-reject. Data pages are not read.
#ifndef HALLMARK_ENGINE_FORMAT_CHECKPOINT_H_
#define HALLMARK_ENGINE_FORMAT_CHECKPOINT_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/result.h"
#include "engine/format/checkpoint_folder.h"
#include "engine/format/generation_config.h"
#include "engine/format/model_config.h"
#include "engine/format/quantization_config.h"
#include "engine/format/tensor.h"

namespace hallmark {

class Checkpoint {
 public:
  static Result<Checkpoint> Open(const std::string& folder);

  const std::string& folder() const { return folder_.path(); }
  const ModelConfig& config() const { return config_; }
  // Absent for a checkpoint that is not quantized.
  const std::optional<QuantizationConfig>& quantization() const { return quantization_; }
  // From config.json and generation_config.json.
  const StopIds& stop_ids() const { return stop_ids_; }

  // As CheckpointFolder's.
  Status Intact() const { return folder_.Intact(); }

  // Every tensor of every shard, sorted by name. Views live as long as the checkpoint.
  std::span<const TensorView> tensors() const { return folder_.tensors(); }
  // Null when there is none.
  const TensorView* Find(std::string_view name) const;
  // The tensors whose names begin with `prefix`.
  std::span<const TensorView> WithPrefix(std::string_view prefix) const;

  // The shards, and the files that were read beside them, in the order of their names.
  std::span<const CheckpointFile> shards() const { return folder_.shards(); }
  std::span<const CheckpointFile> files() const { return folder_.files(); }

 private:
  explicit Checkpoint(CheckpointFolder folder) : folder_(std::move(folder)) {}
  Status ReadConfigs();

  CheckpointFolder folder_;
  ModelConfig config_;
  std::optional<QuantizationConfig> quantization_;
  StopIds stop_ids_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_CHECKPOINT_H_
