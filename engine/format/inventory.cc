// SPDX-License-Identifier: Apache-2.0
#include "engine/format/inventory.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "engine/base/checked.h"
#include "engine/format/exl3_group.h"

namespace hallmark {
namespace {

constexpr int64_t kHadamardBlock = 128;

// Where the text model's tensors may stand, and where its head.
constexpr std::array<std::string_view, 3> kPrefixes = {"model.language_model.",
                                                       "language_model.model.", "model."};
constexpr std::array<std::string_view, 2> kHeads = {"lm_head", "language_model.lm_head"};
constexpr std::array<std::string_view, 2> kUnusedPrefixes = {"model.visual.", "mtp."};

bool IsPlainFloat(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32;
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Takes tensors by role, remembers which were taken and which were wanted in vain.
class Sorter {
 public:
  explicit Sorter(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), taken_(checkpoint.tensors().size(), false) {}

  Result<TensorView> Plain(const std::string& name, std::vector<int64_t> shape) {
    const TensorView* tensor = checkpoint_.Find(name);
    if (tensor == nullptr) {
      missing_.push_back(name);
      return TensorView{};
    }
    Take(*tensor);
    TRY(CheckPlain(*tensor, shape));
    return *tensor;
  }

  // An EXL3 group or a plain matrix. With `optional`, absence is no fault and gives nullopt.
  Result<std::optional<LinearSource>> MaybeLinear(const std::string& name, int64_t in,
                                                  int64_t out) {
    const auto parts = checkpoint_.WithPrefix(name + ".");
    const bool exl3 = LooksLikeExl3(name, parts);
    const TensorView* weight = checkpoint_.Find(name + ".weight");
    if (!exl3 && weight == nullptr) return std::nullopt;
    LinearSource source{.in_features = in, .out_features = out};
    if (exl3) {
      for (const TensorView& part : parts) Take(part);
      Exl3Group group = TRY(ParseExl3Group(name, parts));
      TRY(CheckStoredSize(group, in, out));
      source.weights = std::move(group);
    } else {
      source.weights = TRY(PlainMatrix(name, *weight, in, out));
    }
    return source;
  }

  Result<LinearSource> Linear(const std::string& name, int64_t in, int64_t out) {
    auto source = TRY(MaybeLinear(name, in, out));
    if (source) return std::move(*source);
    missing_.push_back(name + ".trellis or .weight");
    return LinearSource{};
  }

  void Miss(std::string name) { missing_.push_back(std::move(name)); }

  // Refuses missing and unknown tensors; counts the rest.
  Status Finish(const std::string& prefix, CheckpointInventory* inventory) {
    std::vector<std::string> unknown;
    const TensorView* first = nullptr;
    const auto tensors = checkpoint_.tensors();
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (taken_[i]) {
        ++inventory->used_tensors;
        inventory->used_bytes += tensors[i].bytes.size();
      } else if (!CountUnused(tensors[i], inventory)) {
        if (first == nullptr) first = &tensors[i];
        unknown.push_back(tensors[i].name);
      }
    }
    if (!missing_.empty()) {
      std::string message =
          std::to_string(missing_.size()) + " tensors are missing: " + Listed(missing_);
      if (!unknown.empty()) {
        message += "; " + std::to_string(unknown.size()) + " are not known: " + Listed(unknown);
      }
      const std::string name = missing_.front().substr(0, missing_.front().find(' '));
      return Fail(Code::kNotFound, std::move(message),
                  {.file = checkpoint_.folder(), .tensor = name});
    }
    if (first == nullptr) return {};
    std::string message =
        std::to_string(unknown.size()) + " tensors are not known: " + Listed(unknown);
    if (first->name.starts_with(prefix + "layers.")) {
      message +=
          "; the config has " + std::to_string(checkpoint_.config().layers.size()) + " layers";
    }
    return Fail(Code::kUnsupported, std::move(message), first->where());
  }

 private:
  void Take(const TensorView& tensor) {
    taken_[static_cast<size_t>(&tensor - checkpoint_.tensors().data())] = true;
  }

  static Status CheckPlain(const TensorView& tensor, std::span<const int64_t> shape) {
    if (IsPlainFloat(tensor.dtype) && std::ranges::equal(tensor.shape, shape)) return {};
    return Fail(Code::kMismatch,
                "found " + std::string(DTypeName(tensor.dtype)) + " " + ShapeText(tensor.shape) +
                    ", expected BF16, F16 or F32 " + ShapeText(shape),
                tensor.where());
  }

  static Status CheckStoredSize(const Exl3Group& group, int64_t in, int64_t out) {
    const int64_t k = RoundUp(in, kHadamardBlock);
    const int64_t n = RoundUp(out, kHadamardBlock);
    if (group.k == k && group.n == n) return {};
    std::string message = "the group stores " + std::to_string(group.k) + " inputs and " +
                          std::to_string(group.n) + " outputs, the model needs " +
                          std::to_string(in) + " and " + std::to_string(out);
    if (k != in || n != out) {
      message += " (" + std::to_string(k) + " and " + std::to_string(n) + " when padded)";
    }
    return Fail(Code::kMismatch, std::move(message), group.trellis.where());
  }

  Result<PlainLinear> PlainMatrix(const std::string& name, const TensorView& weight, int64_t in,
                                  int64_t out) {
    Take(weight);
    PlainLinear linear{.name = name, .k = in, .n = out};
    const std::array<int64_t, 2> shape = {out, in};
    TRY(CheckPlain(weight, shape));
    linear.weight = weight;
    if (const TensorView* bias = checkpoint_.Find(name + ".bias"); bias != nullptr) {
      Take(*bias);
      TRY(CheckPlain(*bias, std::span(shape).first(1)));
      linear.bias = *bias;
    }
    return linear;
  }

  static bool CountUnused(const TensorView& tensor, CheckpointInventory* inventory) {
    for (const std::string_view prefix : kUnusedPrefixes) {
      if (!tensor.name.starts_with(prefix)) continue;
      auto& parts = inventory->unused;
      auto part = std::find_if(parts.begin(), parts.end(),
                               [&](const UnusedPart& known) { return known.prefix == prefix; });
      if (part == parts.end()) part = parts.insert(part, {.prefix = std::string(prefix)});
      ++part->tensors;
      part->bytes += tensor.bytes.size();
      return true;
    }
    return false;
  }

  const Checkpoint& checkpoint_;
  std::vector<bool> taken_;
  std::vector<std::string> missing_;
};

// The prefix whose embedding or first layer is present.
Result<std::string> FindPrefix(const Checkpoint& checkpoint) {
  std::string found;
  for (const std::string_view candidate : kPrefixes) {
    const std::string prefix(candidate);
    const TensorView* embedding = checkpoint.Find(prefix + "embed_tokens.weight");
    const auto layers = checkpoint.WithPrefix(prefix + "layers.");
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
                                       Sorter* sorter) {
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
                                     Sorter* sorter) {
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
                               Sorter* sorter) {
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
Status SortHead(const Checkpoint& checkpoint, Sorter* sorter, CheckpointInventory* inventory) {
  const ModelConfig& config = checkpoint.config();
  const TieFlag& tie = config.tie;
  const bool says_tied = tie.root.value_or(false) || tie.text.value_or(false);
  for (const std::string_view name : kHeads) {
    auto head = TRY(sorter->MaybeLinear(std::string(name), config.hidden, config.vocab));
    if (!head) continue;
    if (inventory->head) {
      return Fail(Code::kMismatch,
                  "the head is present twice, as lm_head and as " + std::string(name),
                  checkpoint.WithPrefix(std::string(name) + ".").front().where());
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
    return Fail(Code::kMismatch,
                "there is no lm_head, and the root and text_config disagree on "
                "tie_word_embeddings",
                {.file = checkpoint.folder() + "/config.json", .pointer = "/tie_word_embeddings"});
  }
  if (!says_tied) {
    sorter->Miss(says_untied ? "lm_head (tie_word_embeddings is false)"
                             : "lm_head (no config states tie_word_embeddings)");
  }
  return {};
}

// EXL3 tensors and a quantization config come together or not at all.
Status CheckQuantized(const Checkpoint& checkpoint, const CheckpointInventory& inventory) {
  const Exl3Group* first = nullptr;
  for (const LinearSource* linear : Linears(inventory)) {
    const auto* group = std::get_if<Exl3Group>(&linear->weights);
    if (group != nullptr && first == nullptr) first = group;
  }
  if (first != nullptr && !checkpoint.quantization()) {
    return Fail(Code::kMismatch,
                "there are EXL3 tensors, but no config has a quantization_config: a conversion was "
                "interrupted",
                first->trellis.where());
  }
  if (first == nullptr && checkpoint.quantization()) {
    return Fail(Code::kMismatch, "the quantization is exl3, but no linear is an EXL3 group",
                {.file = checkpoint.quantization()->file,
                 .pointer = checkpoint.quantization()->pointer + "/quant_method"});
  }
  return {};
}

}  // namespace

Result<CheckpointInventory> TakeInventory(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  CheckpointInventory inventory;
  inventory.prefix = TRY(FindPrefix(checkpoint));
  const std::string& prefix = inventory.prefix;
  Sorter sorter(checkpoint);
  inventory.embedding =
      TRY(sorter.Plain(prefix + "embed_tokens.weight", {config.vocab, config.hidden}));
  inventory.layers.reserve(config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const std::string at = prefix + "layers." + std::to_string(i) + ".";
    inventory.layers.push_back(TRY(SortLayer(config, config.layers[i], at, &sorter)));
  }
  inventory.final_norm = TRY(sorter.Plain(prefix + "norm.weight", {config.hidden}));
  TRY(SortHead(checkpoint, &sorter, &inventory));
  TRY(sorter.Finish(prefix, &inventory));
  TRY(CheckQuantized(checkpoint, inventory));
  return inventory;
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
