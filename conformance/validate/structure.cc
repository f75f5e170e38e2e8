// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/structure.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "conformance/validate/checks.h"
#include "conformance/validate/model_files.h"
#include "conformance/validate/text_files.h"
#include "conformance/validate/watched_folder.h"
#include "conformance/validate/weights.h"
#include "engine/base/error_json.h"
#include "engine/format/exl3_group.h"

namespace hallmark {
namespace {

// Weights in other forms that a vendor may have left in the folder.
void TellUnusedFiles(const WatchedFolder& folder, FindingList* findings) {
  for (const std::string& name : folder.names()) {
    for (const std::string_view tail : {".bin", ".pt", ".pth", ".gguf", ".onnx", ".ckpt"}) {
      if (!name.ends_with(tail)) continue;
      findings->Add("unused-file", {.code = Code::kUnsupported,
                                    .message = "weights in a form that is never read",
                                    .where = {.file = folder.PathOf(name)}});
    }
  }
}

Json LinearsJson(const CheckpointInventory& inventory) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> forms;  // count, weights
  for (const LinearSource* linear : Linears(inventory)) {
    const auto* group = std::get_if<Exl3Group>(&linear->weights);
    const std::string form = group == nullptr
                                 ? "plain"
                                 : std::string(CodebookName(group->codebook)) + " " +
                                       std::to_string(group->bits()).substr(0, 3) + " bits";
    auto& [count, weights] = forms[form];
    ++count;
    weights += static_cast<uint64_t>(linear->in_features * linear->out_features);
  }
  Json list = Json::array();
  for (const auto& [form, numbers] : forms) {
    list.push_back({{"form", form}, {"count", numbers.first}, {"weights", numbers.second}});
  }
  return list;
}

double BitsOf(const LinearSource& linear) {
  if (const auto* group = std::get_if<Exl3Group>(&linear.weights)) return group->bits();
  const auto* plain = std::get_if<PlainLinear>(&linear.weights);
  const TensorView& weight =
      plain != nullptr ? plain->weight : std::get<AffineLinear>(linear.weights).weight;
  return 8.0 * static_cast<double>(weight.bytes.size()) /
         static_cast<double>(linear.in_features * linear.out_features);
}

// Mean bits of a weight of each layer's linears, scales not counted; the head is last.
Json LayerBitsJson(const CheckpointInventory& inventory) {
  Json list = Json::array();
  struct Sum {
    std::string part;
    double bits = 0;
    int64_t weights = 0;
  };
  std::vector<Sum> sums;
  const std::string layers = inventory.prefix + "layers.";
  for (const LinearSource* linear : Linears(inventory)) {
    const std::string& name = linear->name();
    const bool in_layer = name.starts_with(layers);
    const std::string part =
        in_layer ? name.substr(layers.size(), name.find('.', layers.size()) - layers.size())
                 : "head";
    if (sums.empty() || sums.back().part != part) sums.push_back({.part = part});
    const int64_t weights = linear->in_features * linear->out_features;
    const double bits = BitsOf(*linear);
    sums.back().bits += bits * static_cast<double>(weights);
    sums.back().weights += weights;
  }
  for (const Sum& sum : sums) {
    list.push_back({{"part", sum.part},
                    {"bits", sum.bits / static_cast<double>(sum.weights)},
                    {"weights", sum.weights}});
  }
  return list;
}

Json ModelJson(const WatchedFolder& folder, const Weights& weights, const ModelFiles& model,
               const TextFiles& text) {
  Json json = {{"files", folder.FilesJson()},
               {"tensors", weights.tensors.size()},
               {"stop_ids", text.stop_ids}};
  if (text.tokens) json["tokens"] = *text.tokens;
  if (text.licence) {
    json["licence"] = Utf8(*text.licence);
  }
  if (model.config.sizes) {
    json["layers"] = model.config.config.layers.size();
    json["hidden"] = model.config.config.hidden;
    json["vocabulary"] = model.config.config.vocab;
  }
  if (model.inventory) {
    json["used_tensors"] = model.inventory->used_tensors;
    json["used_bytes"] = model.inventory->used_bytes;
    json["linears"] = LinearsJson(*model.inventory);
    json["layer_bits"] = LayerBitsJson(*model.inventory);
  }
  return json;
}

Json ReadDrafter(const std::string& path, const ModelConfig* target, const StepProgress& progress,
                 FindingList* findings, StepReport* report) {
  WatchedFolder folder(path, findings);
  Json json = Json::object();
  if (!folder.listed()) return json;
  const Weights weights = ReadWeights(folder, progress, findings);
  const DrafterFiles drafter = ReadDrafterFiles(folder, weights, target, findings);
  const auto licence = ReadLicence(folder, findings);
  folder.FindChanges();
  json["files"] = folder.FilesJson();
  json["tensors"] = weights.tensors.size();
  json["used_tensors"] = drafter.used_tensors;
  AddFiles(folder.Files(kDrafterFolder), &report->files);
  report->compared["drafter_files"] = folder.files_read();
  report->compared["drafter_tensors"] = weights.tensors.size();
  if (drafter.config) json["block"] = drafter.config->block_size;
  return json;
}

}  // namespace

Result<StepReport> ValidateStructure(const StructureOptions& options,
                                     const StepProgress& progress) {
  FindingList findings;
  Json facts = Json::object();
  StepReport report{.step = "structure"};
  WatchedFolder folder(options.folder, &findings);
  ModelFiles model;
  if (folder.listed()) {
    const Weights weights = ReadWeights(folder, progress, &findings);
    model = ReadModelFiles(folder, weights, &findings);
    const TextFiles text = ReadTextFiles(folder, model, &findings);
    TellUnusedFiles(folder, &findings);
    folder.FindChanges();
    facts["model"] = ModelJson(folder, weights, model, text);
    report.files = folder.Files(kModelFolder);
    report.compared["files"] = folder.files_read();
    report.compared["tensors"] = weights.tensors.size();
  }
  if (options.drafter) {
    const ModelConfig* target = model.config.sizes ? &model.config.config : nullptr;
    facts["drafter"] = ReadDrafter(*options.drafter, target, progress, &findings, &report);
  }
  report.findings = findings.Sorted();
  report.facts = std::make_shared<const Json>(std::move(facts));
  return report;
}

}  // namespace hallmark
