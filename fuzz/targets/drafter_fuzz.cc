// SPDX-License-Identifier: Apache-2.0
// A whole drafter as one input (folder/packed_folder.h): config and shard headers.
// DrafterCheckpoint::Open and TakeDrafterInventory take any folder; what they accept has every
// layer of its config, each linear of the sizes that its weights give.
#include <cstdint>
#include <cstdlib>

#include "engine/format/drafter_inventory.h"
#include "fuzz/folder/scratch_folder.h"

namespace {

void CheckError(const hallmark::Error& error) {
  if (error.message.empty() || error.code == hallmark::Code::kInternal) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static hallmark::fuzz::ScratchFolder folder;
  folder.Write({reinterpret_cast<const char*>(data), size});
  const auto checkpoint = hallmark::DrafterCheckpoint::Open(folder.path());
  if (!checkpoint.has_value()) {
    CheckError(checkpoint.error());
    return 0;
  }
  const auto inventory = hallmark::TakeDrafterInventory(*checkpoint);
  if (!inventory.has_value()) {
    CheckError(inventory.error());
    return 0;
  }
  const hallmark::DrafterConfig& config = checkpoint->config();
  if (inventory->layers.size() != config.layers.size()) std::abort();
  if (inventory->selector.has_value() != config.selector.has_value()) std::abort();
  if (inventory->fc.in_features != config.tap_width()) std::abort();
  for (const hallmark::LinearSource* linear : hallmark::Linears(*inventory)) {
    if (linear->in_features <= 0 || linear->out_features <= 0 || linear->name().empty()) {
      std::abort();
    }
  }
  return 0;
}
