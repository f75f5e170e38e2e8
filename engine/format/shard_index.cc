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

namespace {

Result<std::string> FileOf(const JsonView& map, const std::string& tensor,
                           const ShardIndex& index) {
  const auto name = TRY(map.Text(tensor));
  if (name && IsPlainName(*name)) return *name;
  return Fail(Code::kMalformed,
              "the tensor's file is " + (name ? "\"" + *name + "\"" : "null") +
                  ", expected the name of a .safetensors file in the same folder",
              index.At(tensor));
}

Result<std::optional<uint64_t>> TotalSize(const JsonView& root) {
  const auto metadata = TRY(root.Object("metadata"));
  if (!metadata) return std::nullopt;
  const auto size = TRY(metadata->Int("total_size", 0, INT64_MAX));
  if (!size) return std::nullopt;
  return static_cast<uint64_t>(*size);
}

Status ReadParts(const Json& document, ShardIndexReading* reading) {
  ShardIndex& index = reading->index;
  const JsonView root = TRY(JsonView::Of(document, index.file));
  const auto size = TotalSize(root);
  if (size.has_value()) {
    index.total_size = *size;
  } else {
    reading->faults.push_back(size.error());
  }
  const auto map = TRY(root.Object("weight_map"));
  if (!map) return Fail(Code::kMalformed, "the index has no weight_map", root.At("weight_map"));
  const std::vector<std::string> tensors = map->Keys();
  for (const std::string& tensor : tensors) {
    auto file = FileOf(*map, tensor, index);
    if (file.has_value()) {
      index.weight_map.emplace(tensor, std::move(*file));
    } else {
      reading->faults.push_back(file.error());
    }
  }
  if (tensors.empty()) {
    return Fail(Code::kMalformed, "the weight_map is empty", root.At("weight_map"));
  }
  return {};
}

}  // namespace

ShardIndexReading ReadShardIndex(const Json& document, const std::string& file) {
  ShardIndexReading reading{.index = {.file = file}};
  const Status read = ReadParts(document, &reading);
  if (!read.has_value()) reading.faults.push_back(read.error());
  return reading;
}

Result<ShardIndex> ShardIndexFromJson(const Json& document, const std::string& file) {
  ShardIndexReading reading = ReadShardIndex(document, file);
  if (!reading.faults.empty()) return Fail(std::move(reading.faults.front()));
  return std::move(reading.index);
}

}  // namespace hallmark
