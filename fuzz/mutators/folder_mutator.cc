// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutators/folder_mutator.h"

#include "fuzz/folder/packed_folder.h"
#include "fuzz/mutators/safetensors_mutator.h"

namespace hallmark::fuzz {
namespace {

// Far above what seeds declare; sizes are spans of sparse files.
constexpr uint64_t kMaxDataBytes = uint64_t{1} << 32;

}  // namespace

std::string MutateFolder(std::string packed, Mutation& mutation) {
  std::vector<PackedFile> files = Unpack(packed);
  if (files.empty()) return MutateBytes(std::move(packed), mutation);
  const size_t chosen = mutation.Below(files.size());
  PackedFile& file = files[chosen];
  const size_t choice = mutation.Below(20);
  if (choice == 0) {
    PackedFile copy = file;
    copy.name = MutateBytes(copy.name, mutation);
    files.push_back(std::move(copy));
  } else if (choice == 1) {
    files.erase(files.begin() + static_cast<ptrdiff_t>(chosen));
  } else if (choice == 2) {
    file.name = MutateBytes(file.name, mutation);
  } else if (choice == 3) {
    std::swap(file.text, files[mutation.Below(files.size())].text);
  } else if (choice == 4) {
    file.text = MutateBytes(file.text, mutation);
  } else {
    file.text = MutateJson(file.text, mutation);
    // Half of the headers are made whole again, so that what lies behind their check is reached.
    if (file.name.ends_with(".safetensors") && mutation.Below(2) == 0) {
      file.text = LayOut(file.text, kMaxDataBytes).header;
    }
  }
  return Pack(files);
}

}  // namespace hallmark::fuzz
