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

Json ModelJson(const WatchedFolder& folder, const Weights& weights, const ModelFiles& model,
               const TextFiles& text) {
  Json json = {{"files", folder.FilesJson()},
               {"tensors", weights.tensors.size()},
               {"stop_ids", text.stop_ids}};
  if (text.tokens) json["tokens"] = *text.tokens;
  if (text.licence) {
    json["licence"] =
        Json::parse(Json(*text.licence).dump(-1, ' ', false, Json::error_handler_t::replace));
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
  }
  return json;
}

Json ReadDrafter(const std::string& path, const ModelConfig* target, const StepProgress& progress,
                 FindingList* findings) {
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
  if (drafter.config) json["block"] = drafter.config->block_size;
  return json;
}

}  // namespace

Result<StepReport> ValidateStructure(const StructureOptions& options,
                                     const StepProgress& progress) {
  FindingList findings;
  Json facts = Json::object();
  WatchedFolder folder(options.folder, &findings);
  ModelFiles model;
  if (folder.listed()) {
    const Weights weights = ReadWeights(folder, progress, &findings);
    model = ReadModelFiles(folder, weights, &findings);
    const TextFiles text = ReadTextFiles(folder, model, &findings);
    TellUnusedFiles(folder, &findings);
    folder.FindChanges();
    facts["model"] = ModelJson(folder, weights, model, text);
  }
  if (options.drafter) {
    const ModelConfig* target = model.config.sizes ? &model.config.config : nullptr;
    facts["drafter"] = ReadDrafter(*options.drafter, target, progress, &findings);
  }
  return StepReport{.step = "structure",
                    .findings = findings.Sorted(),
                    .facts = std::make_shared<const Json>(std::move(facts))};
}

}  // namespace hallmark
