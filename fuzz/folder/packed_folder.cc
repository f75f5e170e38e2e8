// SPDX-License-Identifier: Apache-2.0
#include "fuzz/folder/packed_folder.h"

#include <algorithm>

namespace hallmark::fuzz {
namespace {

constexpr std::string_view kMark = "%% ";

}  // namespace

std::vector<PackedFile> Unpack(std::string_view packed) {
  std::vector<PackedFile> files;
  PackedFile file;
  bool named = false;
  while (!packed.empty()) {
    const size_t line_end = std::min(packed.find('\n'), packed.size());
    const std::string_view line = packed.substr(0, line_end);
    const size_t next = std::min(line_end + 1, packed.size());
    if (line.starts_with(kMark)) {
      if (named || !file.text.empty()) files.push_back(std::move(file));
      file = {.name = std::string(line.substr(kMark.size()))};
      named = true;
    } else {
      file.text += packed.substr(0, next);
    }
    packed.remove_prefix(next);
  }
  if (named || !file.text.empty()) files.push_back(std::move(file));
  return files;
}

std::string Pack(const std::vector<PackedFile>& files) {
  std::string packed;
  for (const PackedFile& file : files) {
    if (!packed.empty() && packed.back() != '\n') packed += '\n';
    if (!file.name.empty()) packed += std::string(kMark) + file.name + "\n";
    packed += file.text;
  }
  return packed;
}

}  // namespace hallmark::fuzz
