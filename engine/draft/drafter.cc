// SPDX-License-Identifier: Apache-2.0
#include "engine/draft/drafter.h"

#include <string>
#include <utility>
#include <variant>

#include "engine/format/affine_quantizer.h"
#include "engine/model/geometry.h"

namespace hallmark {
namespace {

class WeightLoader {
 public:
  WeightLoader(Backend& backend, const DrafterOptions& options)
      : backend_(backend), options_(options) {}

  Result<std::unique_ptr<LinearWeight>> Linear(const LinearSource& source) {
    const auto* plain = std::get_if<PlainLinear>(&source.weights);
    if (plain == nullptr || !QuantizesOnLoad(*plain, options_)) return backend_.LoadLinear(source);
    const QuantizedAffine quantized = TRY(QuantizeAffine(*plain));
    ++quantized_;
    return backend_.LoadLinear(quantized.source);
  }

  Result<std::optional<DrafterConvWeights>> Conv(const std::optional<DrafterConvTensors>& tensors) {
    if (!tensors) return std::nullopt;
    DrafterConvWeights conv;
    conv.base = TRY(backend_.LoadVector(tensors->base));
    conv.projection = TRY(Linear(tensors->projection));
    return conv;
  }

  Result<DrafterLayer> Layer(const DrafterLayerTensors& tensors) {
    DrafterLayer layer;
    layer.input_norm = TRY(backend_.LoadVector(tensors.input_norm));
    layer.post_norm = TRY(backend_.LoadVector(tensors.post_norm));
    layer.q_norm = TRY(backend_.LoadVector(tensors.q_norm));
    layer.k_norm = TRY(backend_.LoadVector(tensors.k_norm));
    layer.q = TRY(Linear(tensors.q));
    layer.k = TRY(Linear(tensors.k));
    layer.v = TRY(Linear(tensors.v));
    layer.o = TRY(Linear(tensors.o));
    layer.gate = TRY(Linear(tensors.gate));
    layer.up = TRY(Linear(tensors.up));
    layer.down = TRY(Linear(tensors.down));
    layer.attention_conv = TRY(Conv(tensors.attention_conv));
    layer.mlp_conv = TRY(Conv(tensors.mlp_conv));
    return layer;
  }

  Result<DrafterSelectorWeights> Selector(const DrafterSelectorTensors& tensors) {
    DrafterSelectorWeights selector;
    selector.predecessor = TRY(backend_.LoadTable(tensors.predecessor));
    selector.successor = TRY(backend_.LoadTable(tensors.successor));
    selector.projection = TRY(Linear(tensors.projection));
    return selector;
  }

  int64_t quantized() const { return quantized_; }

 private:
  Backend& backend_;
  const DrafterOptions& options_;
  int64_t quantized_ = 0;
};

}  // namespace

bool QuantizesOnLoad(const PlainLinear& plain, const DrafterOptions& options) {
  return options.weights == DrafterWeights::kAffine4 && !plain.bias &&
         plain.k % kAffineGroup == 0 && plain.n % kAffineGroup == 0 &&
         plain.k * plain.n >= options.affine_min_elements;
}

Result<std::unique_ptr<Drafter>> Drafter::Load(const DrafterInventory& inventory,
                                               const DrafterConfig& config, const Model& target,
                                               const DrafterOptions& options) {
  TRY(CheckDrafterFits(config, target.config));
  std::unique_ptr<Drafter> drafter(new Drafter);
  drafter->config_ = config;
  drafter->target_ = &target;
  drafter->ops_ = target.backend->draft_ops();
  if (drafter->ops_ == nullptr) {
    return Fail(Code::kUnsupported, "the backend " + target.backend->name() + " cannot draft");
  }
  drafter->vocabulary_ = TRY(DraftVocabulary::Make(options.vocabulary, config.vocab));
  if (config.selector && config.selector->top_k > drafter->vocabulary_.size()) {
    return Fail(Code::kOutOfRange,
                "the draft vocabulary has " + std::to_string(drafter->vocabulary_.size()) +
                    " ids, the selector takes " + std::to_string(config.selector->top_k),
                config.At("selector_top_k"));
  }
  for (const int64_t layer : config.targets) {
    drafter->taps_.push_back(static_cast<int>(layer) + 1);
  }
  TRY(drafter->LoadWeights(inventory, options));
  return drafter;
}

Status Drafter::LoadWeights(const DrafterInventory& inventory, const DrafterOptions& options) {
  Backend& backend = *target_->backend;
  q_heads_ = {.heads = config_.heads, .head_dim = config_.head_dim, .eps = config_.eps};
  k_heads_ = {.heads = config_.kv_heads, .head_dim = config_.head_dim, .eps = config_.eps};
  const std::vector<float> inv_freq = InverseFrequencies(config_.rope_theta, config_.head_dim);
  inv_freq_ = TRY(backend.Allocate(inv_freq.size() * sizeof(float)));
  TRY(backend.Upload(inv_freq_.data(), inv_freq.data(), inv_freq.size() * sizeof(float)));
  WeightLoader loader(backend, options);
  fc_ = TRY(loader.Linear(inventory.fc));
  hidden_norm_ = TRY(backend.LoadVector(inventory.hidden_norm));
  norm_ = TRY(backend.LoadVector(inventory.norm));
  for (size_t i = 0; i < inventory.layers.size(); ++i) {
    DrafterLayer layer = TRY(loader.Layer(inventory.layers[i]));
    const DrafterLayerKind& kind = config_.layers[i];
    layer.attention = {.heads = config_.heads,
                       .kv_heads = config_.kv_heads,
                       .head_dim = config_.head_dim,
                       .window = kind.window.value_or(0),
                       .causal = kind.causal};
    layers_.push_back(std::move(layer));
  }
  if (inventory.selector) selector_ = TRY(loader.Selector(*inventory.selector));
  quantized_ = loader.quantized();
  return {};
}

std::optional<int64_t> Drafter::context_rows() const {
  const auto window = config_.widest_window();
  if (!window) return std::nullopt;
  return *window - 1;
}

}  // namespace hallmark
