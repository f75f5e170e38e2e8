// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/weights.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/format/checkpoint_folder.h"
#include "engine/format/safetensors.h"
#include "engine/format/safetensors_header.h"

namespace hallmark {
namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

class LastByte : public HeaderVisitor {
 public:
  void Metadata(JsonString, uint64_t, JsonString) override {}
  void Tensor(const HeaderRecord& record) override { end = std::max(end, record.end); }
  uint64_t end = 0;
};

// How many bytes the file should have, as its header says; nullopt when the header is not whole or
// not good.
std::optional<uint64_t> StatedBytes(std::span<const std::byte> bytes, const std::string& path) {
  if (bytes.size() < kHeaderPrefixBytes) return std::nullopt;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kMaxHeaderBytes) return std::nullopt;
  if (length > bytes.size() - kHeaderPrefixBytes) return kHeaderPrefixBytes + length;
  LastByte visitor;
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kHeaderPrefixBytes,
                                length);
  if (!WalkHeader(header, path, visitor).has_value()) return std::nullopt;
  return kHeaderPrefixBytes + length + visitor.end;
}

class Reader {
 public:
  Reader(WatchedFolder& folder, const StepProgress& progress, FindingList* findings)
      : folder_(folder), progress_(progress), findings_(findings) {}

  Weights Read() {
    for (const std::string& name : folder_.names()) {
      if (name.ends_with(".safetensors")) present_.push_back(name);
    }
    if (folder_.Has(kIndex)) {
      ReadShards();
    } else {
      ReadSingle();
    }
    std::stable_sort(out_.tensors.begin(), out_.tensors.end(),
                     [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
    KeepOnce();
    if (index_) CompareWithIndex();
    return std::move(out_);
  }

 private:
  void Tell(std::string_view check, Code code, Locator where, std::string message) {
    findings_->Add(check, {.code = code, .message = std::move(message), .where = std::move(where)});
  }

  void ReadSingle() {
    const std::vector<std::string> strangers = UnlistedShards(present_, {kSingle});
    const bool single = folder_.Has(kSingle);
    if (!single && strangers.empty()) {
      Tell("weights-missing", Code::kNotFound, {.file = folder_.PathOf(kIndex)},
           "the folder has neither model.safetensors nor an index");
    }
    if (!single && !strangers.empty()) {
      Tell("index-missing", Code::kNotFound, {.file = folder_.PathOf(kIndex)},
           "there are " + std::to_string(strangers.size()) + " shards, \"" + strangers.front() +
               "\" first, and no index");
    }
    if (!single) return;
    for (const std::string& name : strangers) {
      Tell("stray-shard", Code::kMismatch, {.file = folder_.PathOf(name)},
           "a shard lies beside model.safetensors, and no index lists it");
    }
    if (progress_) progress_(kSingle, 0, 1);
    out_.complete = ReadShard(kSingle) && strangers.empty();
    if (progress_) progress_(kSingle, 1, 1);
  }

  void ReadShards() {
    const auto document = folder_.ReadDocument(kIndex);
    bool entries = false;
    if (document) {
      ShardIndexReading reading = ReadShardIndex(*document, folder_.PathOf(kIndex));
      findings_->AddAll("index-entry", reading.faults);
      entries = reading.faults.empty();
      index_ = std::move(reading.index);
    }
    // An index that cannot be read leaves the shards: each may have a fault of its own.
    const std::vector<std::string> listed = index_ ? index_->Files() : present_;
    if (index_ && entries) {
      for (const std::string& name : UnlistedShards(present_, listed)) {
        Tell("stray-shard", Code::kMismatch, {.file = folder_.PathOf(name)},
             "the index does not name this shard, whose tensors would be lost");
      }
    }
    bool known = index_.has_value() && entries;
    for (size_t i = 0; i < listed.size(); ++i) {
      if (progress_) progress_(listed[i], i, listed.size());
      const bool read = folder_.Has(listed[i]) ? ReadShard(listed[i]) : MissShard(listed[i]);
      if (!read) bad_.insert(listed[i]);
    }
    if (progress_) progress_("shards", listed.size(), listed.size());
    for (const auto& [tensor, file] :
         index_ ? index_->weight_map : std::map<std::string, std::string>{}) {
      if (bad_.contains(file)) out_.excused.insert(tensor);
    }
    out_.complete = known;
  }

  bool MissShard(const std::string& name) {
    Locator where{.file = folder_.PathOf(name)};
    size_t tensors = 0;
    for (const auto& [tensor, file] : index_->weight_map) {
      if (file != name) continue;
      if (tensors++ > 0) continue;
      where.pointer = index_->At(tensor).pointer;
      where.tensor = tensor;
    }
    Tell("shard-missing", Code::kNotFound, std::move(where),
         "the index puts " + std::to_string(tensors) + " tensors in this shard, which is absent");
    return false;
  }

  bool ReadShard(const std::string& name) {
    auto file = folder_.Read(name);
    if (!file) return false;
    const std::string& path = file->path();
    auto table = ParseSafetensors(file->bytes(), path);
    if (!table.has_value()) {
      const auto stated = StatedBytes(file->bytes(), path);
      if (stated && *stated > file->bytes().size()) {
        Error error = table.error();
        error.message = "the file ends early: it has " + std::to_string(file->bytes().size()) +
                        " bytes, its header wants " + std::to_string(*stated);
        error.where.byte = file->bytes().size();
        findings_->Add("shard-truncated", std::move(error));
      } else {
        findings_->Add("shard-header", table.error());
      }
      return false;
    }
    out_.tensors.insert(out_.tensors.end(), std::make_move_iterator(table->tensors.begin()),
                        std::make_move_iterator(table->tensors.end()));
    out_.maps.push_back(std::move(*file));
    return true;
  }

  // Where two shards hold a tensor, the one that the index names is kept.
  void KeepOnce() {
    std::vector<TensorView> kept;
    for (TensorView& tensor : out_.tensors) {
      if (kept.empty() || kept.back().name != tensor.name) {
        kept.push_back(std::move(tensor));
        continue;
      }
      Tell("duplicate-tensor", Code::kMismatch, tensor.where(),
           "the tensor is also in " + kept.back().file);
      if (index_ && index_->weight_map.contains(tensor.name) &&
          folder_.PathOf(index_->weight_map.at(tensor.name)) == tensor.file) {
        kept.back() = std::move(tensor);
      }
    }
    out_.tensors = std::move(kept);
  }

  // A finding for each shard and kind of disagreement, with the first tensor: a stale index can
  // disagree about thousands.
  void CompareWithIndex() {
    std::map<std::string, std::vector<const TensorView*>> unlisted;  // by the file they are in
    for (const TensorView& tensor : out_.tensors) {
      if (!index_->weight_map.contains(tensor.name)) unlisted[tensor.file].push_back(&tensor);
    }
    std::map<std::string, std::vector<std::string>> stale;  // by the file they should be in
    uint64_t total = 0;
    bool whole = bad_.empty() && unlisted.empty();
    for (const auto& [name, file] : index_->weight_map) {
      if (bad_.contains(file)) continue;
      const TensorView* tensor = FindTensor(out_.tensors, name);
      if (tensor == nullptr) {
        stale[file].push_back(name);
        continue;
      }
      total += tensor->bytes.size();
      if (tensor->file == folder_.PathOf(file)) continue;
      whole = false;
      Tell("index-wrong-shard", Code::kMismatch, index_->At(name),
           "the index puts the tensor in \"" + file + "\", but it is in " + tensor->file);
    }
    // An index with entries at fault lacks those tensors: no other finding follows from that.
    if (out_.complete) {
      for (const auto& [file, tensors] : unlisted) {
        Tell("index-incomplete", Code::kMismatch, tensors.front()->where(),
             "the index lacks " + std::to_string(tensors.size()) +
                 " tensors of this shard, this one first");
      }
    }
    for (const auto& [file, names] : stale) {
      Locator where = index_->At(names.front());
      where.file = folder_.PathOf(file);
      Tell("index-stale", Code::kMismatch, std::move(where),
           "the index puts " + std::to_string(names.size()) +
               " tensors in this shard, whose header lacks them, this one first");
      out_.excused.insert(names.begin(), names.end());
    }
    if (!whole || !stale.empty() || !out_.complete) return;
    if (findings_->CountOf("duplicate-tensor") > 0) return;
    if (index_->total_size && *index_->total_size != total) {
      Tell("index-total-size", Code::kMismatch,
           {.file = index_->file, .pointer = "/metadata/total_size"},
           "the index says " + std::to_string(*index_->total_size) + " bytes, the tensors have " +
               std::to_string(total));
    }
  }

  WatchedFolder& folder_;
  const StepProgress& progress_;
  FindingList* findings_;
  std::vector<std::string> present_;
  std::optional<ShardIndex> index_;
  std::set<std::string> bad_;
  Weights out_;
};

}  // namespace

Weights ReadWeights(WatchedFolder& folder, const StepProgress& progress, FindingList* findings) {
  return Reader(folder, progress, findings).Read();
}

}  // namespace hallmark
