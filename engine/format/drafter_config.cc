// SPDX-License-Identifier: Apache-2.0
#include "engine/format/drafter_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/format/json_view.h"

namespace hallmark {
namespace {

// Bounds far above any drafter and low enough that no product of two sizes overflows.
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 4096;
constexpr int64_t kMaxWidth = int64_t{1} << 24;
constexpr int64_t kMaxPositions = int64_t{1} << 31;
constexpr int64_t kMaxTargets = 64;
constexpr int64_t kMaxConvKernel = 16;
constexpr int64_t kMaxTopK = 1024;

// Defaults of HF transformers' Qwen3Config.
constexpr int64_t kDefaultHeadDim = 128;
constexpr int64_t kDefaultMaxWindowLayers = 28;
constexpr double kDefaultEps = 1e-6;

// The places a key may stand at. All that state it must agree.
class Places {
 public:
  Places(std::vector<JsonView> views, DrafterConfig* config)
      : views_(std::move(views)), config_(config) {}

  void AddView(JsonView view) { views_.push_back(std::move(view)); }

  // The first view that states `key`, the top level when none does; remembers where.
  Result<JsonView> Of(std::string_view key) const {
    const JsonView* found = nullptr;
    for (const JsonView& view : views_) {
      if (!view.Has(key)) continue;
      if (found != nullptr && *found->Raw(key) != *view.Raw(key)) {
        return Fail(Code::kMismatch,
                    "stated twice with different values: " + found->Raw(key)->dump() + " at " +
                        found->At(key).pointer + ", " + view.Raw(key)->dump() + " here",
                    view.At(key));
      }
      if (found == nullptr) found = &view;
    }
    const JsonView& place = found != nullptr ? *found : views_.front();
    config_->at[std::string(key)] = place.At(key).pointer;
    return place;
  }

  Result<int64_t> NeedInt(std::string_view key, int64_t low, int64_t high) const {
    return TRY(Of(key)).NeedInt(key, low, high);
  }
  Result<std::optional<int64_t>> Int(std::string_view key, int64_t low, int64_t high) const {
    return TRY(Of(key)).Int(key, low, high);
  }
  Result<std::optional<bool>> Bool(std::string_view key) const { return TRY(Of(key)).Bool(key); }
  Result<std::optional<std::string>> Text(std::string_view key) const {
    return TRY(Of(key)).Text(key);
  }
  Result<std::optional<double>> Number(std::string_view key) const {
    return TRY(Of(key)).Number(key);
  }
  Locator At(std::string_view key) const { return config_->At(key); }

  // A finite number above zero; `standard` when absent.
  Result<double> Positive(std::string_view key, double standard) const {
    const double value = TRY(Number(key)).value_or(standard);
    // fp32 is what it becomes.
    if (!std::isfinite(static_cast<float>(value)) || !(static_cast<float>(value) > 0.0f)) {
      return Fail(Code::kOutOfRange, "is no positive number", At(key));
    }
    return value;
  }

 private:
  std::vector<JsonView> views_;  // the top level first
  DrafterConfig* config_;
};

Status CheckFamily(const Places& keys, const JsonView& root) {
  const auto type = TRY(keys.Text("model_type"));
  if (type && *type != "qwen3") {
    return Fail(Code::kUnsupported, "the model_type is \"" + *type + "\"; qwen3 is supported",
                keys.At("model_type"));
  }
  const Json* names = root.Raw("architectures");
  if (names == nullptr) return {};
  if (!names->is_array()) {
    return Fail(Code::kMalformed, "expected an array of names", root.At("architectures"));
  }
  for (size_t i = 0; i < names->size(); ++i) {
    Locator where = root.At("architectures");
    where.pointer += "/" + std::to_string(i);
    const Json& name = (*names)[i];
    if (!name.is_string()) return Fail(Code::kMalformed, "expected a name", where);
    if (name != "DFlashDraftModel" && name != "DFlash2DraftModel") {
      return Fail(Code::kUnsupported,
                  "the architecture is \"" + name.get<std::string>() +
                      "\"; DFlashDraftModel and DFlash2DraftModel are supported",
                  where);
    }
  }
  return {};
}

// Refuses settings that change the arithmetic.
Status CheckArithmetic(const Places& keys, const JsonView& root) {
  const auto act = TRY(keys.Text("hidden_act"));
  if (act && *act != "silu") {
    return Fail(Code::kUnsupported, "the activation is \"" + *act + "\"; silu is supported",
                keys.At("hidden_act"));
  }
  for (const char* key : {"attention_bias", "sample_from_anchor"}) {
    if (TRY(keys.Bool(key)).value_or(false)) {
      return Fail(Code::kUnsupported, std::string(key) + " is true; false is supported",
                  keys.At(key));
    }
  }
  if (const auto packed = TRY(root.Object("quantization"))) {
    for (const auto& [key, wanted] : {std::pair{"bits", 4}, std::pair{"group_size", 64}}) {
      const int64_t value = TRY(packed->NeedInt(key, 1, kMaxWidth));
      if (value != wanted) {
        return Fail(
            Code::kUnsupported,
            "found " + std::to_string(value) + "; " + std::to_string(wanted) + " is supported",
            packed->At(key));
      }
    }
  }
  return {};
}

Status ReadSizes(const Places& keys, DrafterConfig* config) {
  config->hidden = TRY(keys.NeedInt("hidden_size", 1, kMaxWidth));
  config->intermediate = TRY(keys.NeedInt("intermediate_size", 1, kMaxWidth));
  config->vocab = TRY(keys.NeedInt("vocab_size", 1, kMaxWidth));
  config->heads = static_cast<int>(TRY(keys.NeedInt("num_attention_heads", 1, kMaxHeads)));
  config->kv_heads = static_cast<int>(TRY(keys.NeedInt("num_key_value_heads", 1, kMaxHeads)));
  config->head_dim =
      static_cast<int>(TRY(keys.Int("head_dim", 2, kMaxHeadDim)).value_or(kDefaultHeadDim));
  config->eps = static_cast<float>(TRY(keys.Positive("rms_norm_eps", kDefaultEps)));
  if (config->heads % config->kv_heads != 0) {
    return Fail(Code::kMismatch,
                "num_attention_heads is " + std::to_string(config->heads) +
                    ", not a multiple of num_key_value_heads " + std::to_string(config->kv_heads),
                keys.At("num_attention_heads"));
  }
  if (config->head_dim % 2 != 0) {
    return Fail(Code::kUnsupported, "an odd head_dim cannot be rotated in pairs",
                keys.At("head_dim"));
  }
  const auto reduced = TRY(keys.Int("draft_vocab_size", 1, kMaxWidth));
  if (reduced && *reduced != config->vocab) {
    return Fail(Code::kUnsupported,
                "a vocabulary of its own of " + std::to_string(*reduced) +
                    " ids; a drafter uses the target's head here",
                keys.At("draft_vocab_size"));
  }
  return {};
}

Status ReadRope(const Places& keys, DrafterConfig* config) {
  for (const char* key : {"rope_type", "type"}) {
    const auto type = TRY(keys.Text(key));
    if (type && *type != "default") {
      return Fail(Code::kUnsupported, "the rope type is \"" + *type + "\"; default is supported",
                  keys.At(key));
    }
  }
  const auto factor = TRY(keys.Number("partial_rotary_factor"));
  if (factor && *factor != 1.0) {
    return Fail(Code::kUnsupported, "a rotation of a part of the head; the whole is supported",
                keys.At("partial_rotary_factor"));
  }
  const auto theta = TRY(keys.Number("rope_theta"));
  if (!theta) return Fail(Code::kMalformed, "the key is missing", keys.At("rope_theta"));
  // Below 1 the frequencies grow with the channel instead of falling.
  if (!std::isfinite(*theta) || *theta < 1.0) {
    return Fail(Code::kOutOfRange, "rope_theta is not a number of 1 or more",
                keys.At("rope_theta"));
  }
  config->rope_theta = *theta;
  return {};
}

// is_causal if stated, else causal; both must agree where both are.
Result<std::optional<bool>> ReadCausal(const Places& keys) {
  const auto first = TRY(keys.Bool("is_causal"));
  const auto second = TRY(keys.Bool("causal"));
  if (first && second && *first != *second) {
    return Fail(Code::kMismatch, "is_causal and causal state different values", keys.At("causal"));
  }
  return first ? first : second;
}

// Whether each layer slides: layer_types, else the layers from max_window_layers on when the window
// is in use (the rule of HF transformers' Qwen3Config).
Result<std::vector<bool>> ReadSliding(const Places& keys, int64_t count, bool in_use) {
  const int64_t first =
      TRY(keys.Int("max_window_layers", 0, kMaxWidth)).value_or(kDefaultMaxWindowLayers);
  const JsonView place = TRY(keys.Of("layer_types"));
  const Json* kinds = place.Raw("layer_types");
  std::vector<bool> sliding;
  if (kinds == nullptr) {
    for (int64_t i = 0; i < count; ++i) sliding.push_back(in_use && i >= first);
    return sliding;
  }
  if (!kinds->is_array()) {
    return Fail(Code::kMalformed, "expected an array of layer kinds", place.At("layer_types"));
  }
  if (static_cast<int64_t>(kinds->size()) != count) {
    return Fail(Code::kMismatch,
                "layer_types has " + std::to_string(kinds->size()) +
                    " items, num_hidden_layers is " + std::to_string(count),
                place.At("layer_types"));
  }
  for (size_t i = 0; i < kinds->size(); ++i) {
    Locator where = place.At("layer_types");
    where.pointer += "/" + std::to_string(i);
    const Json& kind = (*kinds)[i];
    if (!kind.is_string()) return Fail(Code::kMalformed, "expected a layer kind", where);
    const bool slides = kind == "sliding_attention";
    if (!slides && kind != "full_attention") {
      return Fail(Code::kUnsupported,
                  "the layer kind is \"" + kind.get<std::string>() +
                      "\"; sliding_attention and full_attention are supported",
                  where);
    }
    if (slides && !in_use) {
      return Fail(Code::kMismatch, "a sliding layer, but use_sliding_window is not true", where);
    }
    sliding.push_back(slides);
  }
  return sliding;
}

Status ReadLayers(const Places& keys, DrafterConfig* config) {
  const int64_t count = TRY(keys.NeedInt("num_hidden_layers", 1, kMaxLayers));
  const auto causal = TRY(ReadCausal(keys));
  const bool in_use = TRY(keys.Bool("use_sliding_window")).value_or(false);
  const auto window = TRY(keys.Int("sliding_window", 1, kMaxPositions));
  for (const bool slides : TRY(ReadSliding(keys, count, in_use))) {
    if (slides && !window) {
      return Fail(Code::kMalformed, "a layer slides, but there is no window",
                  keys.At("sliding_window"));
    }
    config->layers.push_back(
        {.window = slides ? window : std::nullopt, .causal = causal.value_or(slides)});
  }
  return {};
}

Status ReadTargets(const Places& keys, DrafterConfig* config) {
  config->target_layers = TRY(keys.Int("num_target_layers", 2, kMaxWidth));
  // The last layer's output is one the target norms before anyone else sees it.
  const int64_t highest = config->target_layers ? *config->target_layers - 2 : kMaxWidth;
  const JsonView place = TRY(keys.Of("target_layer_ids"));
  const auto ids = TRY(place.Ints("target_layer_ids", 0, highest));
  const Locator where = place.At("target_layer_ids");
  if (!ids) return Fail(Code::kMalformed, "the key is missing", where);
  if (ids->empty() || static_cast<int64_t>(ids->size()) > kMaxTargets) {
    return Fail(Code::kOutOfRange,
                "found " + std::to_string(ids->size()) + " layer ids, expected 1 to " +
                    std::to_string(kMaxTargets),
                where);
  }
  for (size_t i = 0; i < ids->size(); ++i) {
    const auto earlier = ids->begin() + static_cast<int64_t>(i);
    if (std::find(ids->begin(), earlier, *earlier) == earlier) continue;
    Locator item = where;
    item.pointer += "/" + std::to_string(i);
    return Fail(Code::kOutOfRange, "layer " + std::to_string(*earlier) + " is listed twice", item);
  }
  config->targets = *ids;
  return {};
}

Status ReadBlock(const Places& keys, DrafterConfig* config) {
  config->block_size = TRY(keys.NeedInt("block_size", 2, DrafterConfig::kMaxBlock));
  config->mask_token =
      static_cast<int32_t>(TRY(keys.NeedInt("mask_token_id", 0, config->vocab - 1)));
  config->input_scale = static_cast<float>(TRY(keys.Positive("input_embedding_scale", 1.0)));
  config->output_multiplier = static_cast<float>(TRY(keys.Positive("output_multiplier", 1.0)));
  if (TRY(keys.Of("final_logit_softcapping")).Has("final_logit_softcapping")) {
    config->softcap = static_cast<float>(TRY(keys.Positive("final_logit_softcapping", 0.0)));
  }
  return {};
}

// Two keys that come together or not at all.
Result<std::optional<std::pair<int64_t, int64_t>>> ReadPair(const Places& keys, const char* first,
                                                            int64_t first_high, const char* second,
                                                            int64_t second_high) {
  const auto a = TRY(keys.Int(first, 1, first_high));
  const auto b = TRY(keys.Int(second, 1, second_high));
  if (!a && !b) return std::nullopt;
  if (!a || !b) {
    const char* absent = a ? second : first;
    return Fail(Code::kMalformed, std::string("the key is missing beside ") + (a ? first : second),
                keys.At(absent));
  }
  return std::pair{*a, *b};
}

Status ReadDFlash2(const Places& keys, const JsonView& root, DrafterConfig* config) {
  const auto conv =
      TRY(ReadPair(keys, "conv_kernel_size", kMaxConvKernel, "conv_group_size", kMaxWidth));
  if (conv) {
    config->conv = {.kernel = conv->first, .group = conv->second};
    if (config->hidden % conv->second != 0) {
      return Fail(Code::kMismatch,
                  "hidden_size " + std::to_string(config->hidden) +
                      " is no multiple of conv_group_size " + std::to_string(conv->second),
                  keys.At("conv_group_size"));
    }
  }
  const auto selector = TRY(ReadPair(keys, "selector_rank", kMaxWidth, "selector_top_k",
                                     std::min(kMaxTopK, config->vocab)));
  if (selector) config->selector = {.rank = selector->first, .top_k = selector->second};
  const Json* names = root.Raw("architectures");
  if (names == nullptr) return {};
  // The keys decide what runs; an architecture that says otherwise is a fault.
  for (size_t i = 0; i < names->size(); ++i) {
    const bool second = (*names)[i] == "DFlash2DraftModel";
    if (second == conv.has_value() && second == selector.has_value()) continue;
    Locator where = root.At("architectures");
    where.pointer += "/" + std::to_string(i);
    return Fail(Code::kMismatch,
                std::string(second ? "DFlash2 has" : "DFlash has neither") +
                    " a convolution and a selector; conv_kernel_size and selector_rank are " +
                    (conv ? "present" : "absent") + " and " + (selector ? "present" : "absent"),
                where);
  }
  return {};
}

// Notes the fault of each part; those that rest on a part at fault are left out.
Status ReadParts(const Json& value, DrafterConfigReading* reading) {
  DrafterConfig& config = reading->config;
  const JsonView root = TRY(JsonView::Of(value, config.file));
  std::vector<JsonView> views = {root};
  if (const auto own = TRY(root.Object("dflash_config"))) views.push_back(*own);
  const Places keys(views, &config);
  Places rope(views, &config);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (const auto place = TRY(root.Object(key))) rope.AddView(*place);
  }
  TRY(CheckFamily(keys, root));
  const auto good = [reading](const Status& status) {
    if (!status.has_value()) reading->faults.push_back(status.error());
    return status.has_value();
  };
  good(CheckArithmetic(keys, root));
  const bool sizes = good(ReadSizes(keys, &config));
  good(ReadRope(rope, &config));
  good(ReadLayers(keys, &config));
  good(ReadTargets(keys, &config));
  if (!sizes) return {};
  good(ReadBlock(keys, &config));
  good(ReadDFlash2(keys, root, &config));
  return {};
}

Error Mismatch(const DrafterConfig& drafter, std::string_view key, std::string message) {
  return {.code = Code::kMismatch, .message = std::move(message), .where = drafter.At(key)};
}

}  // namespace

std::optional<int64_t> DrafterConfig::widest_window() const {
  int64_t widest = 0;
  for (const DrafterLayerKind& layer : layers) {
    if (!layer.window) return std::nullopt;
    widest = std::max(widest, *layer.window);
  }
  return widest;
}

Locator DrafterConfig::At(std::string_view key) const {
  const auto found = at.find(key);
  return {.file = file, .pointer = found == at.end() ? PointerToken(key) : found->second};
}

DrafterConfigReading ReadDrafterConfig(const Json& value, const std::string& file) {
  DrafterConfigReading reading;
  reading.config.file = file;
  const Status read = ReadParts(value, &reading);
  if (!read.has_value()) reading.faults.push_back(read.error());
  return reading;
}

Result<DrafterConfig> DrafterConfigFromJson(const Json& value, const std::string& file) {
  DrafterConfigReading reading = ReadDrafterConfig(value, file);
  if (!reading.faults.empty()) return Fail(std::move(reading.faults.front()));
  return std::move(reading.config);
}

Result<DrafterConfig> ParseDrafterConfig(std::string_view text, const std::string& file) {
  const Json root = TRY(ParseJson(text, file));
  return DrafterConfigFromJson(root, file);
}

std::vector<Error> DrafterMismatches(const DrafterConfig& drafter, const ModelConfig& target) {
  std::vector<Error> errors;
  const auto differ = [&](std::string_view key, const char* what, int64_t own, int64_t other) {
    if (own == other) return;
    errors.push_back(Mismatch(drafter, key,
                              std::string("the drafter's ") + what + " is " + std::to_string(own) +
                                  ", the target's is " + std::to_string(other)));
  };
  const int64_t layers = static_cast<int64_t>(target.layers.size());
  differ("hidden_size", "hidden size", drafter.hidden, target.hidden);
  differ("vocab_size", "vocabulary", drafter.vocab, target.vocab);
  if (drafter.target_layers) {
    differ("num_target_layers", "number of target layers", *drafter.target_layers, layers);
  }
  for (size_t i = 0; i < drafter.targets.size(); ++i) {
    if (drafter.targets[i] >= 0 && drafter.targets[i] < layers - 1) continue;
    Error error = Mismatch(drafter, "target_layer_ids",
                           "the drafter reads the output of layer " +
                               std::to_string(drafter.targets[i]) + ", the target has " +
                               std::to_string(layers) + " layers and the last is never read");
    error.where.pointer += "/" + std::to_string(i);
    errors.push_back(std::move(error));
  }
  if (drafter.mask_token < 0 || drafter.mask_token >= target.vocab) {
    errors.push_back(Mismatch(drafter, "mask_token_id",
                              "the mask is id " + std::to_string(drafter.mask_token) +
                                  ", the target's vocabulary is " + std::to_string(target.vocab)));
  }
  return errors;
}

Status CheckDrafterFits(const DrafterConfig& drafter, const ModelConfig& target) {
  std::vector<Error> errors = DrafterMismatches(drafter, target);
  if (!errors.empty()) return Fail(std::move(errors.front()));
  return {};
}

}  // namespace hallmark
