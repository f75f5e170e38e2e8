// SPDX-License-Identifier: Apache-2.0
#include "engine/format/checkpoint_folder.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "engine/format/json_view.h"
#include "engine/format/safetensors.h"
#include "engine/format/shard_index.h"

namespace hallmark {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kQuantization = "quantization_config.json";
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string Join(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.back() == '/' ? folder + name : folder + "/" + name;
}

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// "<stem>-00001-of-00003.safetensors": a name that belongs to a set of shards.
bool IsShardName(std::string_view name) {
  constexpr std::string_view kTail = "-00000-of-00000.safetensors";
  if (name.size() <= kTail.size()) return false;
  name.remove_prefix(name.size() - kTail.size());
  for (size_t i = 0; i < kTail.size(); ++i) {
    const bool digit = name[i] >= '0' && name[i] <= '9';
    if (kTail[i] == '0' ? !digit : name[i] != kTail[i]) return false;
  }
  return true;
}

std::string Quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

// Refuses a tensor that two shards hold. `tensors` is sorted by name.
Status CheckHeldOnce(std::span<const TensorView> tensors) {
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].name == tensors[i - 1].name) {
      return Fail(Code::kMismatch, "the tensor is also in " + tensors[i - 1].file,
                  tensors[i].where());
    }
  }
  return {};
}

// The index and the shards name the same tensors, in the same files, of the same total size.
Status CheckAgainstIndex(const ShardIndex& index, const std::string& folder,
                         std::span<const TensorView> tensors) {
  for (const TensorView& tensor : tensors) {
    if (index.weight_map.contains(tensor.name)) continue;
    size_t missing = 0;
    for (const TensorView& other : tensors) missing += !index.weight_map.contains(other.name);
    Locator where = tensor.where();
    return Fail(Code::kMismatch,
                "the index is incomplete: " + std::to_string(missing) +
                    " tensors of the shards are not in it, this one first",
                std::move(where));
  }
  uint64_t total = 0;
  for (const auto& [name, file] : index.weight_map) {
    const TensorView* tensor = FindTensor(tensors, name);
    const std::string wanted = Join(folder, file);
    if (tensor == nullptr) {
      Locator where = index.At(name);
      where.file = wanted;
      return Fail(Code::kMismatch, "the index puts the tensor in this shard, whose header lacks it",
                  std::move(where));
    }
    if (tensor->file != wanted) {
      return Fail(Code::kMismatch,
                  "the index puts the tensor in \"" + file + "\", but it is in " + tensor->file,
                  index.At(name));
    }
    total += tensor->bytes.size();
  }
  if (index.total_size && *index.total_size != total) {
    return Fail(Code::kMismatch,
                "the index says " + std::to_string(*index.total_size) +
                    " bytes, the tensors have " + std::to_string(total),
                {.file = index.file, .pointer = "/metadata/total_size"});
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> WeightFiles(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.ends_with(".safetensors")) names.push_back(std::move(name));
  }
  if (error) {
    return Fail(Code::kIo, "cannot list the folder: " + error.message(), {.file = folder});
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> UnlistedShards(const std::vector<std::string>& present,
                                        const std::vector<std::string>& listed) {
  std::vector<std::string> strangers;
  for (const std::string& name : present) {
    const bool known = std::binary_search(listed.begin(), listed.end(), name);
    if (!known && (name == kSingle || IsShardName(name))) strangers.push_back(name);
  }
  return strangers;
}

CheckpointFolder::CheckpointFolder() = default;
CheckpointFolder::CheckpointFolder(CheckpointFolder&&) noexcept = default;
CheckpointFolder& CheckpointFolder::operator=(CheckpointFolder&&) noexcept = default;
CheckpointFolder::~CheckpointFolder() = default;

Result<CheckpointFolder> CheckpointFolder::Open(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return Fail(Exists(path) ? Code::kUnsupported : Code::kNotFound,
                "expected a folder with a checkpoint", {.file = path});
  }
  CheckpointFolder folder;
  folder.path_ = path;
  if (!folder.Has(kConfig)) {
    const bool weights = !TRY(WeightFiles(path)).empty();
    return Fail(Code::kNotFound,
                weights ? "the folder holds weights but no config.json: a conversion or download "
                          "was interrupted"
                        : "the folder has no config.json",
                {.file = folder.PathOf(kConfig)});
  }
  folder.config_ = std::make_unique<Json>(TRY(folder.ReadFile(kConfig)));
  return folder;
}

std::string CheckpointFolder::PathOf(const std::string& name) const { return Join(path_, name); }

bool CheckpointFolder::Has(const std::string& name) const { return HasEntry(PathOf(name)); }

Result<Json> CheckpointFolder::ReadFile(const std::string& name) {
  const std::string path = PathOf(name);
  Json document = TRY(ReadJsonFile(path));
  const MappedFile file = TRY(MappedFile::Open(path));
  files_.push_back({name, path, file.bytes().size()});
  return document;
}

Result<std::optional<QuantizationConfig>> CheckpointFolder::ReadQuantization() {
  std::optional<QuantizationConfig> quantization;
  const std::string config_path = PathOf(kConfig);
  const auto add = [&quantization](QuantizationConfig next) -> Status {
    if (quantization) TRY(CheckAgreement(*quantization, next));
    if (!quantization || !next.storage.empty()) quantization = std::move(next);
    return {};
  };
  const JsonView view = TRY(JsonView::Of(*config_, config_path));
  const auto text = TRY(view.Object("text_config"));
  constexpr const char* kKey = "quantization_config";
  if (const Json* inner = text ? text->Raw(kKey) : nullptr; inner != nullptr) {
    TRY(add(TRY(ParseQuantizationConfig(*inner, config_path, text->At(kKey).pointer))));
  }
  if (const Json* outer = view.Raw(kKey); outer != nullptr) {
    TRY(add(TRY(ParseQuantizationConfig(*outer, config_path, view.At(kKey).pointer))));
  }
  if (Has(kQuantization)) {
    const Json whole = TRY(ReadFile(kQuantization));
    TRY(add(TRY(ParseQuantizationConfig(whole, PathOf(kQuantization), ""))));
  }
  return quantization;
}

Status CheckpointFolder::ReadWeights() {
  TRY(ReadShards());
  std::sort(files_.begin(), files_.end(),
            [](const CheckpointFile& a, const CheckpointFile& b) { return a.name < b.name; });
  return {};
}

Status CheckpointFolder::MapShard(const std::string& name) {
  const std::string path = Join(path_, name);
  MappedFile file = TRY(MappedFile::Open(path));
  auto read = ParseSafetensors(file.bytes(), path);
  TRY(file.Intact());  // before a fault that zeros may have made
  SafetensorsTable table = TRY(std::move(read));
  shards_.push_back({name, path, file.bytes().size()});
  files_.push_back(shards_.back());
  tensors_.insert(tensors_.end(), std::make_move_iterator(table.tensors.begin()),
                  std::make_move_iterator(table.tensors.end()));
  maps_.push_back(std::move(file));
  return {};
}

Status CheckpointFolder::ReadSingleFile() {
  const std::vector<std::string> present = TRY(WeightFiles(path_));
  const std::vector<std::string> strangers = UnlistedShards(present, {kSingle});
  const bool single = HasEntry(Join(path_, kSingle));
  if (!single || !strangers.empty()) {
    return Fail(single ? Code::kMismatch : Code::kNotFound,
                strangers.empty() ? "the folder has neither model.safetensors nor an index"
                                  : "shards without an index: " + Quoted(strangers),
                {.file = Join(path_, single ? strangers.front() : kIndex)});
  }
  return MapShard(kSingle);
}

Status CheckpointFolder::ReadShards() {
  const std::string index_path = Join(path_, kIndex);
  if (!HasEntry(index_path)) return ReadSingleFile();

  const ShardIndex index = TRY(ShardIndexFromJson(TRY(ReadFile(kIndex)), index_path));

  const std::vector<std::string> listed = index.Files();
  const std::vector<std::string> present = TRY(WeightFiles(path_));
  for (const auto& [tensor, name] : index.weight_map) {
    if (Exists(Join(path_, name))) continue;
    Locator where = index.At(tensor);
    where.file = Join(path_, name);
    std::string message = "the index names a shard that is absent";
    std::vector<std::string> unnamed;
    std::set_difference(present.begin(), present.end(), listed.begin(), listed.end(),
                        std::back_inserter(unnamed));
    if (!unnamed.empty()) message += "; files that it does not name: " + Quoted(unnamed);
    return Fail(Code::kNotFound, std::move(message), std::move(where));
  }
  const std::vector<std::string> strangers = UnlistedShards(present, listed);
  if (!strangers.empty()) {
    return Fail(Code::kMismatch, "the index does not name this shard, whose tensors would be lost",
                {.file = Join(path_, strangers.front())});
  }
  for (const std::string& name : listed) TRY(MapShard(name));
  std::stable_sort(tensors_.begin(), tensors_.end(),
                   [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  TRY(CheckHeldOnce(tensors_));
  return CheckAgainstIndex(index, path_, tensors_);
}

Status CheckpointFolder::Intact() const {
  for (const MappedFile& file : maps_) TRY(file.Intact());
  return {};
}

const TensorView* CheckpointFolder::Find(std::string_view name) const {
  return FindTensor(tensors_, name);
}

}  // namespace hallmark
