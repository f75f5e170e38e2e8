// SPDX-License-Identifier: Apache-2.0
// LoadedDrafter: a target and a drafter opened on the CPU backend, for tests that drive the drafter
// itself.
#ifndef HALLMARK_CONFORMANCE_DRAFT_LOADED_DRAFTER_H_
#define HALLMARK_CONFORMANCE_DRAFT_LOADED_DRAFTER_H_

#include <memory>
#include <string>

#include "conformance/model/loaded_model.h"
#include "engine/draft/drafter.h"
#include "engine/format/drafter_inventory.h"

namespace hallmark {

struct LoadedDrafter {
  LoadedModel target;
  std::unique_ptr<DrafterCheckpoint> checkpoint;
  std::unique_ptr<DrafterInventory> inventory;
  std::unique_ptr<Drafter> drafter;
};

inline Result<LoadedDrafter> LoadDrafter(const std::string& target, const std::string& directory,
                                         const DrafterOptions& options = {},
                                         CpuBackendOptions cpu = {}) {
  LoadedDrafter loaded;
  loaded.target = TRY(LoadModel(target, cpu));
  loaded.checkpoint = std::make_unique<DrafterCheckpoint>(TRY(DrafterCheckpoint::Open(directory)));
  loaded.inventory =
      std::make_unique<DrafterInventory>(TRY(TakeDrafterInventory(*loaded.checkpoint)));
  TRY(CheckFiniteDrafter(*loaded.inventory));
  loaded.drafter = TRY(
      Drafter::Load(*loaded.inventory, loaded.checkpoint->config(), *loaded.target.model, options));
  return loaded;
}

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_DRAFT_LOADED_DRAFTER_H_
