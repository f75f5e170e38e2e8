// SPDX-License-Identifier: Apache-2.0
#include "engine/format/drafter_inventory.h"

#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <variant>

#include "engine/format/exl3_group.h"
#include "engine/format/json_view.h"
#include "engine/format/tensor_sorter.h"

namespace hallmark {
namespace {

Result<std::optional<DrafterConvTensors>> SortConv(const DrafterConfig& config,
                                                   const std::string& at, TensorSorter* sorter) {
  if (!config.conv) return std::nullopt;
  const int64_t kernel = config.conv->kernel;
  DrafterConvTensors conv;
  conv.base = TRY(sorter->Plain(at + "base_kernel", {2, kernel, config.hidden}));
  conv.projection = TRY(sorter->Linear(at + "kernel_projection", config.hidden,
                                       2 * kernel * (config.hidden / config.conv->group)));
  return conv;
}

Result<DrafterLayerTensors> SortLayer(const DrafterConfig& config, const std::string& at,
                                      TensorSorter* sorter) {
  DrafterLayerTensors layer;
  const int64_t hidden = config.hidden;
  layer.input_norm = TRY(sorter->Plain(at + "input_layernorm.weight", {hidden}));
  layer.q = TRY(sorter->Linear(at + "self_attn.q_proj", hidden, config.query_width()));
  layer.k = TRY(sorter->Linear(at + "self_attn.k_proj", hidden, config.kv_width()));
  layer.v = TRY(sorter->Linear(at + "self_attn.v_proj", hidden, config.kv_width()));
  layer.o = TRY(sorter->Linear(at + "self_attn.o_proj", config.query_width(), hidden));
  layer.q_norm = TRY(sorter->Plain(at + "self_attn.q_norm.weight", {config.head_dim}));
  layer.k_norm = TRY(sorter->Plain(at + "self_attn.k_norm.weight", {config.head_dim}));
  layer.post_norm = TRY(sorter->Plain(at + "post_attention_layernorm.weight", {hidden}));
  layer.gate = TRY(sorter->Linear(at + "mlp.gate_proj", hidden, config.intermediate));
  layer.up = TRY(sorter->Linear(at + "mlp.up_proj", hidden, config.intermediate));
  layer.down = TRY(sorter->Linear(at + "mlp.down_proj", config.intermediate, hidden));
  layer.attention_conv = TRY(SortConv(config, at + "attention_conv.", sorter));
  layer.mlp_conv = TRY(SortConv(config, at + "mlp_conv.", sorter));
  return layer;
}

Result<std::optional<DrafterSelectorTensors>> SortSelector(const DrafterConfig& config,
                                                           TensorSorter* sorter) {
  if (!config.selector) return std::nullopt;
  DrafterSelectorTensors selector;
  const std::string at = "candidate_selector.";
  const int64_t rank = config.selector->rank;
  const auto codebook = [&](const char* name) -> Result<TensorView> {
    const std::array<std::string, 2> names = {at + name, at + name + ".weight"};
    return TRY(sorter->PlainUnder(names, {config.vocab, rank}));
  };
  selector.predecessor = TRY(codebook("predecessor_codebook"));
  selector.successor = TRY(codebook("successor_codebook"));
  selector.projection = TRY(sorter->Linear(at + "hidden_projection", config.hidden, rank));
  return selector;
}

Status CheckFiniteLinear(const LinearSource& linear) {
  if (const auto* group = std::get_if<Exl3Group>(&linear.weights)) {
    TRY(CheckFinite(group->input_scale));
    TRY(CheckFinite(group->output_scale));
    return group->bias ? CheckFinite(*group->bias) : Status();
  }
  if (const auto* affine = std::get_if<AffineLinear>(&linear.weights)) {
    TRY(CheckFinite(affine->scales));
    return CheckFinite(affine->biases);
  }
  const auto& plain = std::get<PlainLinear>(linear.weights);
  if (plain.bias) TRY(CheckFinite(*plain.bias));
  return CheckFinite(plain.weight);
}

}  // namespace

Result<bool> StatesAffine(const Json& config, const std::string& file) {
  const JsonView root = TRY(JsonView::Of(config, file));
  const Json* affine = root.Raw("quantization");
  const Json* again = root.Raw("quantization_config");
  if (affine != nullptr && again != nullptr && *affine != *again) {
    return Fail(Code::kMismatch, "quantization and quantization_config state different things",
                root.At("quantization_config"));
  }
  return affine != nullptr;
}

Result<DrafterCheckpoint> DrafterCheckpoint::Open(const std::string& folder) {
  DrafterCheckpoint checkpoint(TRY(CheckpointFolder::Open(folder)));
  CheckpointFolder& files = checkpoint.folder_;
  checkpoint.config_ = TRY(DrafterConfigFromJson(files.config(), files.PathOf("config.json")));
  if (!TRY(StatesAffine(files.config(), files.PathOf("config.json")))) {
    checkpoint.quantization_ = TRY(files.ReadQuantization());
  }
  TRY(files.ReadWeights());
  if (checkpoint.quantization_) {
    TRY(CheckStorage(*checkpoint.quantization_, checkpoint.tensors()));
  }
  return checkpoint;
}

Result<DrafterInventory> TakeDrafterInventory(const DrafterSource& source, TensorFaults* all) {
  const DrafterConfig& config = source.config;
  TensorSorter sorter(source.tensors, source.folder, LinearForms::kAffineToo, all);
  DrafterInventory inventory;
  inventory.fc = TRY(sorter.Linear("fc", config.tap_width(), config.hidden));
  inventory.hidden_norm = TRY(sorter.Plain("hidden_norm.weight", {config.hidden}));
  inventory.layers.reserve(config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    inventory.layers.push_back(
        TRY(SortLayer(config, "layers." + std::to_string(i) + ".", &sorter)));
  }
  inventory.norm = TRY(sorter.Plain("norm.weight", {config.hidden}));
  inventory.selector = TRY(SortSelector(config, &sorter));
  const SortedTensors sorted =
      TRY(sorter.Finish({}, "layers.",
                        "the config has " + std::to_string(config.layers.size()) + " layers" +
                            (config.conv ? "" : " and no convolution")));
  inventory.used_tensors = sorted.used_tensors;
  inventory.used_bytes = sorted.used_bytes;
  // With a linear missing, whether any is an EXL3 group is not known.
  if (all == nullptr || (all->faults.empty() && all->missing.empty())) {
    const Status stated = CheckExl3IsStated(Linears(inventory), source.quantization);
    if (all == nullptr) TRY(stated);
    if (!stated.has_value()) all->unstated = stated.error();
  }
  return inventory;
}

Result<DrafterInventory> TakeDrafterInventory(const DrafterCheckpoint& checkpoint) {
  return TakeDrafterInventory({.config = checkpoint.config(),
                               .quantization = checkpoint.quantization(),
                               .tensors = checkpoint.tensors(),
                               .folder = checkpoint.folder()},
                              nullptr);
}

std::vector<const LinearSource*> Linears(const DrafterInventory& inventory) {
  std::vector<const LinearSource*> linears = {&inventory.fc};
  for (const DrafterLayerTensors& layer : inventory.layers) {
    if (layer.attention_conv) linears.push_back(&layer.attention_conv->projection);
    linears.insert(linears.end(), {&layer.q, &layer.k, &layer.v, &layer.o});
    if (layer.mlp_conv) linears.push_back(&layer.mlp_conv->projection);
    linears.insert(linears.end(), {&layer.gate, &layer.up, &layer.down});
  }
  if (inventory.selector) linears.push_back(&inventory.selector->projection);
  return linears;
}

Status CheckFiniteDrafter(const DrafterInventory& inventory) {
  TRY(CheckFinite(inventory.hidden_norm));
  TRY(CheckFinite(inventory.norm));
  for (const DrafterLayerTensors& layer : inventory.layers) {
    for (const TensorView* norm :
         {&layer.input_norm, &layer.post_norm, &layer.q_norm, &layer.k_norm}) {
      TRY(CheckFinite(*norm));
    }
    if (layer.attention_conv) TRY(CheckFinite(layer.attention_conv->base));
    if (layer.mlp_conv) TRY(CheckFinite(layer.mlp_conv->base));
  }
  if (inventory.selector) {
    TRY(CheckFinite(inventory.selector->predecessor));
    TRY(CheckFinite(inventory.selector->successor));
  }
  for (const LinearSource* linear : Linears(inventory)) TRY(CheckFiniteLinear(*linear));
  return {};
}

}  // namespace hallmark
