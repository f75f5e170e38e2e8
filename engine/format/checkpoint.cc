// SPDX-License-Identifier: Apache-2.0
#include "engine/format/checkpoint.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/format/tensor_sorter.h"

namespace hallmark {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kGeneration = "generation_config.json";

}  // namespace

Result<Checkpoint> Checkpoint::Open(const std::string& folder) {
  Checkpoint checkpoint(TRY(CheckpointFolder::Open(folder)));
  TRY(checkpoint.ReadConfigs());
  TRY(checkpoint.folder_.ReadWeights());
  if (checkpoint.quantization_) {
    TRY(CheckStorage(*checkpoint.quantization_, checkpoint.tensors()));
  }
  return checkpoint;
}

Status Checkpoint::ReadConfigs() {
  const std::string config_path = folder_.PathOf(kConfig);
  config_ = TRY(ModelConfigFromJson(folder_.config(), config_path));
  TRY(AddStopIds(folder_.config(), config_path, config_.vocab, &stop_ids_));
  if (folder_.Has(kGeneration)) {
    const Json generation = TRY(folder_.ReadFile(kGeneration));
    TRY(AddStopIds(generation, folder_.PathOf(kGeneration), config_.vocab, &stop_ids_));
  }
  quantization_ = TRY(folder_.ReadQuantization());
  return {};
}

const TensorView* Checkpoint::Find(std::string_view name) const { return folder_.Find(name); }

std::span<const TensorView> Checkpoint::WithPrefix(std::string_view prefix) const {
  return TensorsWithPrefix(tensors(), prefix);
}

}  // namespace hallmark
