// SPDX-License-Identifier: Apache-2.0
#include "engine/format/inventory.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "engine/format/exl3_group.h"
#include "engine/format/safetensors.h"
#include "engine/format/tensor_sorter.h"

namespace hallmark {
namespace {

// Where the text model's tensors may stand, and where its head.
constexpr std::array<std::string_view, 3> kPrefixes = {"model.language_model.",
                                                       "language_model.model.", "model."};
constexpr std::array<std::string_view, 2> kHeads = {"lm_head", "language_model.lm_head"};
constexpr std::array<std::string_view, 2> kUnusedPrefixes = {"model.visual.", "mtp."};

// The prefix whose embedding or first layer is present.
Result<std::string> FindPrefix(std::span<const TensorView> tensors) {
  std::string found;
  for (const std::string_view candidate : kPrefixes) {
    const std::string prefix(candidate);
    const TensorView* embedding = FindTensor(tensors, prefix + "embed_tokens.weight");
    const auto layers = TensorsWithPrefix(tensors, prefix + "layers.");
    if (embedding == nullptr && layers.empty()) continue;
    if (!found.empty()) {
      return Fail(Code::kMismatch,
                  "the text model is present twice, under \"" + found + "\" and \"" + prefix + "\"",
                  (embedding != nullptr ? *embedding : layers.front()).where());
    }
    found = prefix;
  }
  // With none, the official spelling names what is missing.
  return found.empty() ? std::string(kPrefixes.front()) : found;
}

Result<AttentionTensors> SortAttention(const ModelConfig& config, const std::string& at,
                                       TensorSorter* sorter) {
  AttentionTensors out;
  out.q_gate = TRY(sorter->Linear(at + "q_proj", config.hidden, 2 * config.query_width()));
  out.k = TRY(sorter->Linear(at + "k_proj", config.hidden, config.kv_width()));
  out.v = TRY(sorter->Linear(at + "v_proj", config.hidden, config.kv_width()));
  out.o = TRY(sorter->Linear(at + "o_proj", config.query_width(), config.hidden));
  out.q_norm = TRY(sorter->Plain(at + "q_norm.weight", {config.head_dim}));
  out.k_norm = TRY(sorter->Plain(at + "k_norm.weight", {config.head_dim}));
  return out;
}

Result<DeltaNetTensors> SortDeltaNet(const ModelConfig& config, const std::string& at,
                                     TensorSorter* sorter) {
  DeltaNetTensors out;
  const int64_t heads = config.linear_value_heads;
  out.qkv = TRY(sorter->Linear(at + "in_proj_qkv", config.hidden, config.conv_channels()));
  out.z = TRY(sorter->Linear(at + "in_proj_z", config.hidden, config.linear_value_width()));
  out.a = TRY(sorter->Linear(at + "in_proj_a", config.hidden, heads));
  out.b = TRY(sorter->Linear(at + "in_proj_b", config.hidden, heads));
  out.out = TRY(sorter->Linear(at + "out_proj", config.linear_value_width(), config.hidden));
  out.conv =
      TRY(sorter->Plain(at + "conv1d.weight", {config.conv_channels(), 1, config.conv_kernel}));
  out.a_log = TRY(sorter->Plain(at + "A_log", {heads}));
  out.dt_bias = TRY(sorter->Plain(at + "dt_bias", {heads}));
  out.norm = TRY(sorter->Plain(at + "norm.weight", {config.linear_value_dim}));
  return out;
}

Result<LayerTensors> SortLayer(const ModelConfig& config, LayerKind kind, const std::string& at,
                               TensorSorter* sorter) {
  LayerTensors layer;
  layer.input_norm = TRY(sorter->Plain(at + "input_layernorm.weight", {config.hidden}));
  if (kind == LayerKind::kAttention) {
    layer.mixer = TRY(SortAttention(config, at + "self_attn.", sorter));
  } else {
    layer.mixer = TRY(SortDeltaNet(config, at + "linear_attn.", sorter));
  }
  layer.post_norm = TRY(sorter->Plain(at + "post_attention_layernorm.weight", {config.hidden}));
  layer.gate = TRY(sorter->Linear(at + "mlp.gate_proj", config.hidden, config.intermediate));
  layer.up = TRY(sorter->Linear(at + "mlp.up_proj", config.hidden, config.intermediate));
  layer.down = TRY(sorter->Linear(at + "mlp.down_proj", config.intermediate, config.hidden));
  return layer;
}

// The head, or nothing when the embedding is the head.
Status SortHead(const InventorySource& source, TensorSorter* sorter,
                CheckpointInventory* inventory) {
  const ModelConfig& config = source.config;
  const TieFlag& tie = config.tie;
  const bool says_tied = tie.root.value_or(false) || tie.text.value_or(false);
  for (const std::string_view name : kHeads) {
    auto head = TRY(sorter->MaybeLinear(std::string(name), config.hidden, config.vocab));
    if (!head) continue;
    if (inventory->head) {
      return sorter->Refuse(
          {.code = Code::kMismatch,
           .message = "the head is present twice, as lm_head and as " + std::string(name),
           .where = TensorsWithPrefix(source.tensors, std::string(name) + ".").front().where()});
    }
    inventory->head = std::move(*head);
  }
  if (inventory->head) {
    if (says_tied) {
      inventory->notes.push_back(
          "tie_word_embeddings is true, but a head of its own is present "
          "and is used");
    }
    return {};
  }
  const bool says_untied = tie.root == false || tie.text == false;
  if (says_tied && says_untied) {
    return sorter->Refuse(
        {.code = Code::kMismatch,
         .message =
             "there is no lm_head, and the root and text_config disagree on tie_word_embeddings",
         .where = {.file = source.folder + "/config.json", .pointer = "/tie_word_embeddings"}});
  }
  if (!says_tied) {
    sorter->Miss(says_untied ? "lm_head (tie_word_embeddings is false)"
                             : "lm_head (no config states tie_word_embeddings)");
  }
  return {};
}

}  // namespace

Result<CheckpointInventory> TakeInventory(const InventorySource& source, TensorFaults* all) {
  const ModelConfig& config = source.config;
  CheckpointInventory inventory;
  inventory.prefix = TRY(FindPrefix(source.tensors));
  const std::string& prefix = inventory.prefix;
  TensorSorter sorter(source.tensors, source.folder, LinearForms::kExl3OrPlain, all);
  inventory.embedding =
      TRY(sorter.Plain(prefix + "embed_tokens.weight", {config.vocab, config.hidden}));
  inventory.layers.reserve(config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const std::string at = prefix + "layers." + std::to_string(i) + ".";
    inventory.layers.push_back(TRY(SortLayer(config, config.layers[i], at, &sorter)));
  }
  inventory.final_norm = TRY(sorter.Plain(prefix + "norm.weight", {config.hidden}));
  TRY(SortHead(source, &sorter, &inventory));
  SortedTensors sorted =
      TRY(sorter.Finish(kUnusedPrefixes, prefix + "layers.",
                        "the config has " + std::to_string(config.layers.size()) + " layers"));
  inventory.unused = std::move(sorted.unused);
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

Result<CheckpointInventory> TakeInventory(const Checkpoint& checkpoint) {
  return TakeInventory({.config = checkpoint.config(),
                        .quantization = checkpoint.quantization(),
                        .tensors = checkpoint.tensors(),
                        .folder = checkpoint.folder()},
                       nullptr);
}

std::vector<const LinearSource*> Linears(const CheckpointInventory& inventory) {
  std::vector<const LinearSource*> linears;
  for (const LayerTensors& layer : inventory.layers) {
    if (const auto* mixer = std::get_if<AttentionTensors>(&layer.mixer)) {
      linears.insert(linears.end(), {&mixer->q_gate, &mixer->k, &mixer->v, &mixer->o});
    } else {
      const auto& delta = std::get<DeltaNetTensors>(layer.mixer);
      linears.insert(linears.end(), {&delta.qkv, &delta.z, &delta.a, &delta.b, &delta.out});
    }
    linears.insert(linears.end(), {&layer.gate, &layer.up, &layer.down});
  }
  if (inventory.head) linears.push_back(&*inventory.head);
  return linears;
}

Status CheckFiniteScales(const CheckpointInventory& inventory) {
  TRY(CheckFinite(inventory.final_norm));
  for (const LayerTensors& layer : inventory.layers) {
    TRY(CheckFinite(layer.input_norm));
    TRY(CheckFinite(layer.post_norm));
    if (const auto* mixer = std::get_if<AttentionTensors>(&layer.mixer)) {
      TRY(CheckFinite(mixer->q_norm));
      TRY(CheckFinite(mixer->k_norm));
    } else {
      const auto& delta = std::get<DeltaNetTensors>(layer.mixer);
      for (const TensorView* tensor : {&delta.conv, &delta.a_log, &delta.dt_bias, &delta.norm}) {
        TRY(CheckFinite(*tensor));
      }
    }
  }
  for (const LinearSource* linear : Linears(inventory)) {
    const auto* group = std::get_if<Exl3Group>(&linear->weights);
    const auto* plain = std::get_if<PlainLinear>(&linear->weights);
    if (group != nullptr) {
      TRY(CheckFinite(group->input_scale));
      TRY(CheckFinite(group->output_scale));
    }
    const auto& bias = group != nullptr ? group->bias : plain->bias;
    if (bias) TRY(CheckFinite(*bias));
    // The head may be as large as the embedding; a value of it that is not finite shows in logits.
    const bool head = inventory.head && linear == &*inventory.head;
    if (plain != nullptr && !head) TRY(CheckFinite(plain->weight));
  }
  return {};
}

Status CheckFiniteMatrices(const CheckpointInventory& inventory) {
  TRY(CheckFinite(inventory.embedding));
  for (const LinearSource* linear : Linears(inventory)) {
    const auto* plain = std::get_if<PlainLinear>(&linear->weights);
    if (plain != nullptr) TRY(CheckFinite(plain->weight));
  }
  return {};
}

}  // namespace hallmark
