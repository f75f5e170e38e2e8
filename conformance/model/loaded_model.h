// SPDX-License-Identifier: Apache-2.0
// LoadedModel: a checkpoint opened on the CPU backend for tests that drive the forward pass itself.
#ifndef HALLMARK_CONFORMANCE_MODEL_LOADED_MODEL_H_
#define HALLMARK_CONFORMANCE_MODEL_LOADED_MODEL_H_

#include <memory>
#include <string>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/format/checkpoint.h"
#include "engine/format/inventory.h"
#include "engine/model/model.h"

namespace hallmark {

struct LoadedModel {
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<CheckpointInventory> inventory;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

inline Result<LoadedModel> LoadModel(const std::string& directory, CpuBackendOptions options) {
  LoadedModel loaded;
  loaded.checkpoint = std::make_unique<Checkpoint>(TRY(Checkpoint::Open(directory)));
  loaded.inventory = std::make_unique<CheckpointInventory>(TRY(TakeInventory(*loaded.checkpoint)));
  TRY(CheckFiniteScales(*loaded.inventory));
  loaded.backend = TRY(MakeCpuBackend(options));
  loaded.model = TRY(Model::Load(*loaded.inventory, loaded.checkpoint->config(), *loaded.backend));
  return loaded;
}

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_MODEL_LOADED_MODEL_H_
