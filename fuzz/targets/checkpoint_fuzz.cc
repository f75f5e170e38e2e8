// SPDX-License-Identifier: Apache-2.0
// A whole checkpoint as one input (folder/packed_folder.h): config, quantization, index and shard
// headers. Checkpoint::Open and TakeInventory take any folder; what they accept accounts for every
// tensor once, and names no byte outside its file.
#include <cstdint>
#include <cstdlib>
#include <map>

#include "engine/format/checkpoint.h"
#include "engine/format/inventory.h"
#include "fuzz/folder/scratch_folder.h"

namespace {

void CheckError(const hallmark::Error& error) {
  if (error.message.empty() || error.code == hallmark::Code::kInternal) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static hallmark::fuzz::ScratchFolder folder;
  folder.Write({reinterpret_cast<const char*>(data), size});
  const auto checkpoint = hallmark::Checkpoint::Open(folder.path());
  if (!checkpoint.has_value()) {
    CheckError(checkpoint.error());
    return 0;
  }
  std::map<std::string, uint64_t> sizes;
  for (const hallmark::CheckpointFile& shard : checkpoint->shards())
    sizes[shard.path] = shard.bytes;
  uint64_t bytes = 0;
  for (const hallmark::TensorView& tensor : checkpoint->tensors()) {
    if (!sizes.contains(tensor.file)) std::abort();
    if (tensor.file_offset + tensor.bytes.size() > sizes[tensor.file]) std::abort();
    bytes += tensor.bytes.size();
  }
  const auto inventory = hallmark::TakeInventory(*checkpoint);
  if (!inventory.has_value()) {
    CheckError(inventory.error());
    return 0;
  }
  int64_t tensors = inventory->used_tensors;
  uint64_t used = inventory->used_bytes;
  for (const hallmark::UnusedPart& part : inventory->unused) {
    tensors += part.tensors;
    used += part.bytes;
  }
  if (tensors != static_cast<int64_t>(checkpoint->tensors().size()) || used != bytes) std::abort();
  if (inventory->layers.size() != checkpoint->config().layers.size()) std::abort();
  return 0;
}
