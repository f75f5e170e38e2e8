// SPDX-License-Identifier: Apache-2.0
#include "engine/format/shard_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "engine/format/json_view.h"

namespace hallmark {
namespace {

constexpr std::string_view kExtension = ".safetensors";

// A name that cannot leave the folder on any system.
bool IsPlainName(std::string_view name) {
  if (name.size() <= kExtension.size() || !name.ends_with(kExtension)) return false;
  if (name.find("..") != std::string_view::npos) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return c != '/' && c != '\\' && c != ':' && static_cast<unsigned char>(c) >= 0x20;
  });
}

}  // namespace

std::vector<std::string> ShardIndex::Files() const {
  std::set<std::string> files;
  for (const auto& [tensor, name] : weight_map) files.insert(name);
  return {files.begin(), files.end()};
}

Locator ShardIndex::At(const std::string& tensor) const {
  return {.file = file, .pointer = "/weight_map" + PointerToken(tensor), .tensor = tensor};
}

Result<ShardIndex> ShardIndexFromJson(const Json& document, const std::string& file) {
  const JsonView root = TRY(JsonView::Of(document, file));
  ShardIndex index{.file = file};
  const auto metadata = TRY(root.Object("metadata"));
  if (metadata) {
    const auto size = TRY(metadata->Int("total_size", 0, INT64_MAX));
    if (size) index.total_size = static_cast<uint64_t>(*size);
  }
  const auto map = TRY(root.Object("weight_map"));
  if (!map) return Fail(Code::kMalformed, "the index has no weight_map", root.At("weight_map"));
  for (const std::string& tensor : map->Keys()) {
    const auto name = TRY(map->Text(tensor));
    if (!name || !IsPlainName(*name)) {
      return Fail(Code::kMalformed,
                  "the tensor's file is " + (name ? "\"" + *name + "\"" : "null") +
                      ", expected the name of a .safetensors file in the same folder",
                  index.At(tensor));
    }
    index.weight_map.emplace(tensor, *name);
  }
  if (index.weight_map.empty()) {
    return Fail(Code::kMalformed, "the weight_map is empty", root.At("weight_map"));
  }
  return index;
}

}  // namespace hallmark
