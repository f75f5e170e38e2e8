// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/model_files.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/format/drafter_inventory.h"
#include "engine/format/json_view.h"
#include "engine/format/quantization_config.h"
#include "engine/format/tensor_sorter.h"

namespace hallmark {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kQuantization = "quantization_config.json";

std::unique_ptr<Json> ReadConfig(WatchedFolder& folder, bool weights, FindingList* findings) {
  if (!folder.Has(kConfig)) {
    findings->Add("config-missing",
                  {.code = Code::kNotFound,
                   .message = weights ? "the folder holds weights but no config.json: a conversion "
                                        "or download was interrupted"
                                      : "the folder has no config.json",
                   .where = {.file = folder.PathOf(kConfig)}});
    return nullptr;
  }
  auto document = folder.ReadDocument(kConfig);
  return document ? std::make_unique<Json>(std::move(*document)) : nullptr;
}

// The statements about the quantization, each read for itself and held against the one before.
class Statements {
 public:
  explicit Statements(FindingList* findings) : findings_(findings) {}

  void Add(const Json& value, const std::string& file, const std::string& pointer) {
    QuantizationReading reading = ReadQuantizationConfig(value, file, pointer);
    findings_->AddAll("quantization-value", reading.faults);
    if (!reading.faults.empty()) good_ = false;
    // What was at fault is absent from the reading, so that the rest can still be compared.
    if (config_) {
      findings_->AddAll("quantization-disagrees", Disagreements(*config_, reading.config));
    }
    if (!config_ || !reading.config.storage.empty()) config_ = std::move(reading.config);
  }

  bool good() const { return good_; }
  const std::optional<QuantizationConfig>& config() const { return config_; }

 private:
  FindingList* findings_;
  bool good_ = true;
  std::optional<QuantizationConfig> config_;
};

Statements ReadQuantization(WatchedFolder& folder, const Json& config, FindingList* findings) {
  Statements statements(findings);
  const std::string path = folder.PathOf(kConfig);
  constexpr const char* kKey = "quantization_config";
  const auto find = [](const Json& object, const char* key) -> const Json* {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  };
  const Json* text = find(config, "text_config");
  if (text != nullptr && text->is_object()) {
    const Json* inner = find(*text, kKey);
    if (inner != nullptr) statements.Add(*inner, path, std::string("/text_config/") + kKey);
  }
  const Json* outer = find(config, kKey);
  if (outer != nullptr) statements.Add(*outer, path, std::string("/") + kKey);
  if (folder.Has(kQuantization)) {
    const auto whole = folder.ReadDocument(kQuantization);
    if (whole) statements.Add(*whole, folder.PathOf(kQuantization), "");
  }
  return statements;
}

// "lm_head (tie_word_embeddings is false)" -> "lm_head"; "x.trellis or .weight" -> "x.trellis".
std::string NameOf(const std::string& missing) { return missing.substr(0, missing.find(' ')); }

bool IsExcused(const std::string& name, const std::set<std::string>& excused) {
  if (excused.contains(name)) return true;
  // A linear is wanted as a group: any part of it in a shard that is not there excuses it.
  const size_t dot = name.rfind(".trellis");
  const std::string group = (dot == std::string::npos ? name : name.substr(0, dot)) + ".";
  const auto next = excused.lower_bound(group);
  return next != excused.end() && next->starts_with(group);
}

// The number after `prefix`, as in "model.layers.12.mlp": 12.
std::optional<int64_t> LayerOf(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int64_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return layer;
}

// Tells of what a sorter found. Layers that are missing whole, or that the config does not have,
// are one finding each kind.
class TensorTeller {
 public:
  TensorTeller(std::string folder, std::string layers, int64_t count, const Weights& weights,
               FindingList* findings)
      : folder_(std::move(folder)),
        layers_(std::move(layers)),
        count_(count),
        weights_(weights),
        findings_(findings) {
    for (const TensorView& tensor : weights.tensors) {
      const auto layer = LayerOf(tensor.name, layers_);
      if (layer) present_.insert(*layer);
    }
  }

  void Tell(const TensorFaults& all) {
    for (const Error& fault : all.faults) {
      if (fault.code == Code::kNotFound && IsExcused(fault.where.tensor, weights_.excused))
        continue;
      findings_->Add("tensor-form", fault);
    }
    if (all.unstated) findings_->Add("exl3-unstated", *all.unstated);
    if (weights_.complete) TellMissing(all.missing);
    TellUnknown(all.unknown);
  }

 private:
  void TellMissing(const std::vector<std::string>& missing) {
    std::map<int64_t, std::vector<std::string>> whole;
    for (const std::string& wanted : missing) {
      const std::string name = NameOf(wanted);
      if (IsExcused(name, weights_.excused)) continue;
      const auto layer = LayerOf(name, layers_);
      if (layer && !present_.contains(*layer)) {
        whole[*layer].push_back(name);
        continue;
      }
      findings_->Add("missing-tensor", {.code = Code::kNotFound,
                                        .message = "no shard holds " + wanted,
                                        .where = {.file = folder_, .tensor = name}});
    }
    if (whole.empty()) return;
    size_t tensors = 0;
    for (const auto& [layer, names] : whole) tensors += names.size();
    findings_->Add("missing-tensor",
                   {.code = Code::kNotFound,
                    .message = std::to_string(whole.size()) + " layers are missing whole, layer " +
                               std::to_string(whole.begin()->first) + " first (" +
                               std::to_string(tensors) + " tensors)",
                    .where = {.file = folder_, .tensor = whole.begin()->second.front()}});
  }

  void TellUnknown(const std::vector<const TensorView*>& unknown) {
    std::vector<const TensorView*> beyond;
    for (const TensorView* tensor : unknown) {
      const auto layer = LayerOf(tensor->name, layers_);
      if (layer && *layer >= count_) {
        beyond.push_back(tensor);
        continue;
      }
      findings_->Add("unknown-tensor", {.code = Code::kUnsupported,
                                        .message = "the tensor has no role in this model",
                                        .where = tensor->where()});
    }
    if (beyond.empty()) return;
    findings_->Add("unknown-tensor", {.code = Code::kUnsupported,
                                      .message = "the config has " + std::to_string(count_) +
                                                 " layers, and " + std::to_string(beyond.size()) +
                                                 " tensors belong to layers beyond, this one first",
                                      .where = beyond.front()->where()});
  }

  std::string folder_;
  std::string layers_;  // what names of layers begin with
  int64_t count_;
  const Weights& weights_;
  FindingList* findings_;
  std::set<int64_t> present_;
};

// What a pack states about its widths and codebooks, against those that its tensors have. Nothing
// is decoded by these statements, so none is a fault.
void CheckStatements(const QuantizationConfig& stated, const CheckpointInventory& inventory,
                     FindingList* findings) {
  double low = 9.0;
  double high = 0.0;
  bool codebook = !stated.codebook.has_value();
  for (const LinearSource* linear : Linears(inventory)) {
    const auto* group = std::get_if<Exl3Group>(&linear->weights);
    const bool head = inventory.head && linear == &*inventory.head;
    if (group != nullptr && stated.codebook == group->codebook) codebook = true;
    if (head) {
      const double bits = group != nullptr ? group->bits() : 16.0;
      // head_bits is whole, so that it cannot state a half width.
      const bool half = group != nullptr && group->k2 % 2 != 0;
      if (!half && stated.head_bits && *stated.head_bits != bits) {
        findings->Add("stated-bits",
                      {.code = Code::kMismatch,
                       .message = "head_bits is " + std::to_string(*stated.head_bits) +
                                  ", the head has " + std::to_string(bits).substr(0, 4),
                       .where = {.file = stated.file,
                                 .pointer = stated.pointer + "/head_bits",
                                 .tensor = group != nullptr ? group->trellis.name : ""}});
      }
    } else if (group != nullptr) {
      low = std::min(low, group->bits());
      high = std::max(high, group->bits());
    }
  }
  if (stated.bits && high > 0.0 && (*stated.bits < low || *stated.bits > high)) {
    findings->Add(
        "stated-bits",
        {.code = Code::kMismatch,
         .message = "bits is " + std::to_string(*stated.bits).substr(0, 4) + ", the layers have " +
                    std::to_string(low).substr(0, 3) + " to " + std::to_string(high).substr(0, 3),
         .where = {.file = stated.file, .pointer = stated.pointer + "/bits"}});
  }
  if (!codebook) {
    findings->Add("stated-codebook",
                  {.code = Code::kMismatch,
                   .message = "the config names codebook " +
                              std::string(CodebookName(*stated.codebook)) + ", no tensor has it",
                   .where = {.file = stated.file, .pointer = stated.pointer + "/codebook"}});
  }
}

void TellUnused(const CheckpointInventory& inventory, const std::string& folder,
                FindingList* findings) {
  for (const UnusedPart& part : inventory.unused) {
    findings->Add("unused-part", {.code = Code::kUnsupported,
                                  .message = std::to_string(part.tensors) + " tensors (" +
                                             std::to_string(part.bytes) + " bytes) of " +
                                             part.prefix + "* are never loaded",
                                  .where = {.file = folder, .tensor = part.prefix}});
  }
  for (const std::string& note : inventory.notes) {
    findings->Add("tied-with-head",
                  {.code = Code::kMismatch,
                   .message = note,
                   .where = {.file = folder + "/config.json", .pointer = "/tie_word_embeddings"}});
  }
}

// Names of tensor_storage that lie in shards which could not be read are no faults of it.
void CheckStored(const QuantizationConfig& config, const Weights& weights, FindingList* findings) {
  for (const Error& fault : StorageFaults(config, weights.tensors)) {
    if (IsExcused(fault.where.tensor, weights.excused)) continue;
    findings->Add("storage-disagrees", fault);
  }
}

}  // namespace

ModelFiles ReadModelFiles(WatchedFolder& folder, const Weights& weights, FindingList* findings) {
  ModelFiles out;
  out.document = ReadConfig(folder, !weights.tensors.empty(), findings);
  if (out.document == nullptr) return out;
  out.config = ReadModelConfig(*out.document, folder.PathOf(kConfig));
  findings->AddAll("config-value", out.config.faults);
  const Statements statements = ReadQuantization(folder, *out.document, findings);
  const auto& quantization = statements.config();
  const bool known = weights.complete && !weights.tensors.empty();
  if (quantization && quantization->storage.empty() && statements.good()) {
    findings->Add("storage-missing",
                  {.code = Code::kNotFound,
                   .message = "no quantization_config.json lists the stored tensors",
                   .where = {.file = folder.PathOf(kQuantization)}});
  }
  if (quantization && known) CheckStored(*quantization, weights, findings);
  if (!out.config.sizes || !known) return out;

  TensorFaults all;
  auto inventory = TakeInventory({.config = out.config.config,
                                  .quantization = quantization,
                                  .tensors = weights.tensors,
                                  .folder = folder.path()},
                                 &all);
  if (!inventory.has_value()) {
    findings->Add("two-models", inventory.error());
    return out;
  }
  const auto layers = static_cast<int64_t>(out.config.config.layers.size());
  TensorTeller(folder.path(), inventory->prefix + "layers.", layers, weights, findings).Tell(all);
  TellUnused(*inventory, folder.path(), findings);
  if (!all.empty() || !weights.excused.empty()) return out;
  if (quantization) CheckStatements(*quantization, *inventory, findings);
  out.inventory = std::move(*inventory);
  return out;
}

DrafterFiles ReadDrafterFiles(WatchedFolder& folder, const Weights& weights,
                              const ModelConfig* target, FindingList* findings) {
  DrafterFiles out;
  const auto document = ReadConfig(folder, !weights.tensors.empty(), findings);
  if (document == nullptr) return out;
  const std::string path = folder.PathOf(kConfig);
  DrafterConfigReading reading = ReadDrafterConfig(*document, path);
  findings->AddAll("config-value", reading.faults);
  std::optional<QuantizationConfig> quantization;
  const auto affine = StatesAffine(*document, path);
  if (!affine.has_value()) {
    findings->Add("quantization-disagrees", affine.error());
  } else if (!*affine) {
    quantization = ReadQuantization(folder, *document, findings).config();
  }
  const bool known = weights.complete && !weights.tensors.empty();
  if (quantization && known) CheckStored(*quantization, weights, findings);
  if (!reading.faults.empty()) return out;
  out.config = std::move(reading.config);
  if (target != nullptr) {
    findings->AddAll("drafter-mismatch", DrafterMismatches(*out.config, *target));
    // What a converter writes that takes the padding for a mask it was not told.
    const int64_t mask = out.config->mask_token;
    if (std::find(target->eos.begin(), target->eos.end(), mask) != target->eos.end()) {
      findings->Add("drafter-mask-is-a-stop",
                    {.code = Code::kMismatch,
                     .message = "the mask is id " + std::to_string(mask) +
                                ", which ends texts in the target's config.json",
                     .where = out.config->At("mask_token_id")});
    }
  }
  if (!known) return out;
  TensorFaults all;
  const auto inventory = TakeDrafterInventory({.config = *out.config,
                                               .quantization = quantization,
                                               .tensors = weights.tensors,
                                               .folder = folder.path()},
                                              &all);
  CHECK(inventory.has_value());
  const auto layers = static_cast<int64_t>(out.config->layers.size());
  TensorTeller(folder.path(), "layers.", layers, weights, findings).Tell(all);
  out.used_tensors = inventory->used_tensors;
  return out;
}

}  // namespace hallmark
