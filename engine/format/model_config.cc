// SPDX-License-Identifier: Apache-2.0
#include "engine/format/model_config.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/format/generation_config.h"
#include "engine/format/json_view.h"

namespace hallmark {
namespace {

// Bounds far above any model and low enough that no product of two sizes overflows.
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 4096;
constexpr int64_t kMaxWidth = int64_t{1} << 24;
constexpr int64_t kMaxPositions = int64_t{1} << 31;

// Defaults of HF transformers' Qwen3_5TextConfig.
constexpr int64_t kDefaultHeadDim = 256;
constexpr int64_t kDefaultPositions = 32768;
constexpr int64_t kDefaultInterval = 4;
constexpr double kDefaultTheta = 10000.0;
constexpr double kDefaultRotaryFactor = 0.25;
constexpr double kDefaultEps = 1e-6;

// What the mixers' kernels are written for; every published geometry has these.
constexpr int64_t kHeadBlock = 128;
constexpr int64_t kDeltaNetDim = 128;
constexpr int64_t kConvKernel = 4;

// The keys of the text model that are read. In a nested config they belong to text_config; the root
// may repeat them, with the same value.
constexpr std::array kTextKeys = {
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "max_position_embeddings",
    "rms_norm_eps",
    "hidden_act",
    "attention_bias",
    "attn_output_gate",
    "output_gate_type",
    "layer_types",
    "full_attention_interval",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
    "num_experts",
    "rope_parameters",
    "rope_scaling",
    "rope_type",
    "rope_theta",
    "partial_rotary_factor",
    "mrope_section",
};

bool IsDenseFamily(std::string_view type) { return type == "qwen3_5" || type == "qwen3_5_text"; }

tl::unexpected<Error> Foreign(const char* what, const std::string& name, Locator where) {
  const bool experts =
      name.find("moe") != std::string::npos || name.find("Moe") != std::string::npos;
  return Fail(Code::kUnsupported,
              std::string("the ") + what + " is \"" + name + "\"" +
                  (experts ? ", a mixture of experts" : "") + "; dense qwen3_5 is supported",
              std::move(where));
}

Status CheckFamily(const JsonView& root, const JsonView& text, bool nested) {
  const auto type = TRY(root.Text("model_type"));
  if (type && !IsDenseFamily(*type)) return Foreign("model_type", *type, root.At("model_type"));
  if (nested) {
    const auto inner = TRY(text.Text("model_type"));
    if (inner && !IsDenseFamily(*inner)) {
      return Foreign("model_type", *inner, text.At("model_type"));
    }
  }
  bool known_architecture = false;
  if (const Json* names = root.Raw("architectures"); names != nullptr) {
    if (!names->is_array()) {
      return Fail(Code::kMalformed, "expected an array of names", root.At("architectures"));
    }
    for (size_t i = 0; i < names->size(); ++i) {
      Locator where = root.At("architectures");
      where.pointer += "/" + std::to_string(i);
      if (!(*names)[i].is_string()) return Fail(Code::kMalformed, "expected a name", where);
      const auto name = (*names)[i].get<std::string>();
      if (name != "Qwen3_5ForConditionalGeneration" && name != "Qwen3_5ForCausalLM") {
        return Foreign("architecture", name, where);
      }
      known_architecture = true;
    }
  }
  if (!type && !known_architecture) {
    return Fail(Code::kMalformed, "neither model_type nor architectures names a family",
                root.At("model_type"));
  }
  const int64_t experts = TRY(text.Int("num_experts", 0, kMaxWidth)).value_or(0);
  if (experts > 0) {
    return Fail(Code::kUnsupported,
                "a mixture of " + std::to_string(experts) + " experts; dense qwen3_5 is supported",
                text.At("num_experts"));
  }
  return {};
}

Status CheckRootAgrees(const JsonView& root, const JsonView& text, const char* key) {
  const Json* outer = root.Raw(key);
  if (outer == nullptr) return {};
  const Json* inner = text.Raw(key);
  if (inner == nullptr) {
    return Fail(Code::kMismatch, "the root states a key that text_config lacks", root.At(key));
  }
  if (*outer != *inner) {
    return Fail(Code::kMismatch, "the root and text_config state different values", root.At(key));
  }
  return {};
}

// Settings that change the arithmetic.
Status CheckActivation(const JsonView& text) {
  const auto act = TRY(text.Text("hidden_act"));
  if (act && *act != "silu") {
    return Fail(Code::kUnsupported, "the activation is \"" + *act + "\"; silu is supported",
                text.At("hidden_act"));
  }
  return {};
}

Status CheckAttentionBias(const JsonView& text) {
  if (TRY(text.Bool("attention_bias")).value_or(false)) {
    return Fail(Code::kUnsupported, "attention_bias is true; projections have no bias here",
                text.At("attention_bias"));
  }
  return {};
}

Status CheckAttentionGate(const JsonView& text) {
  if (!TRY(text.Bool("attn_output_gate")).value_or(true)) {
    return Fail(Code::kUnsupported, "attn_output_gate is false; attention is always gated here",
                text.At("attn_output_gate"));
  }
  return {};
}

// The activation of the DeltaNet's z gate, whatever the key's name suggests.
Status CheckOutputGate(const JsonView& text) {
  const auto gate = TRY(text.Text("output_gate_type"));
  if (gate && *gate != "swish" && *gate != "silu") {
    return Fail(Code::kUnsupported, "the output gate is \"" + *gate + "\"; swish is supported",
                text.At("output_gate_type"));
  }
  return {};
}

// A rope setting may stand in rope_parameters, at text level, or in both with one value.
class RopeSettings {
 public:
  static Result<RopeSettings> Of(const JsonView& text) {
    RopeSettings rope(text);
    for (const char* key : {"rope_parameters", "rope_scaling"}) {
      const auto object = TRY(text.Object(key));
      if (object) rope.places_.push_back(*object);
    }
    return rope;
  }

  // The view that states `key`; the text level when none does.
  Result<JsonView> Place(std::string_view key) const {
    const JsonView* found = nullptr;
    for (const JsonView& place : places_) {
      if (!place.Has(key)) continue;
      if (found != nullptr && *found->Raw(key) != *place.Raw(key)) {
        return Fail(Code::kMismatch, "stated twice with different values", place.At(key));
      }
      if (found == nullptr) found = &place;
    }
    return found == nullptr ? places_.front() : *found;
  }

  Status CheckType() const {
    for (const JsonView& place : places_) {
      for (const char* key : {"rope_type", "type"}) {
        if (&place == &places_.front() && std::string_view(key) == "type") continue;
        const auto type = TRY(place.Text(key));
        if (type && *type != "default") {
          return Fail(Code::kUnsupported,
                      "the rope type is \"" + *type + "\"; \"default\" is supported",
                      place.At(key));
        }
      }
      for (const char* key : {"full_attention", "linear_attention"}) {
        if (place.Has(key)) {
          return Fail(Code::kUnsupported, "rope parameters by layer kind are not supported",
                      place.At(key));
        }
      }
    }
    return {};
  }

 private:
  explicit RopeSettings(const JsonView& text) : places_{text} {}
  std::vector<JsonView> places_;  // the text level first
};

Status ReadRope(const JsonView& text, ModelConfig* config) {
  const RopeSettings rope = TRY(RopeSettings::Of(text));
  TRY(rope.CheckType());
  const JsonView theta_place = TRY(rope.Place("rope_theta"));
  config->rope_theta = TRY(theta_place.Number("rope_theta")).value_or(kDefaultTheta);
  // Below 1 the frequencies grow with the channel instead of falling, and may leave fp32.
  if (!std::isfinite(config->rope_theta) || config->rope_theta < 1.0) {
    return Fail(Code::kOutOfRange, "rope_theta is not a number of 1 or more",
                theta_place.At("rope_theta"));
  }
  const JsonView factor_place = TRY(rope.Place("partial_rotary_factor"));
  const double factor =
      TRY(factor_place.Number("partial_rotary_factor")).value_or(kDefaultRotaryFactor);
  // The width is truncated, as HF transformers does; the comparison also refuses a NaN.
  const double width = config->head_dim * factor;
  if (!(width >= 1.0) || !(width < config->head_dim + 1.0)) {
    return Fail(Code::kOutOfRange,
                "partial_rotary_factor gives a rotary width outside 2 to head_dim",
                factor_place.At("partial_rotary_factor"));
  }
  config->rotary_dim = static_cast<int>(width);
  if (config->rotary_dim % 2 != 0 || config->rotary_dim > config->head_dim) {
    return Fail(Code::kOutOfRange,
                "partial_rotary_factor gives the rotary width " +
                    std::to_string(config->rotary_dim) + ", which is odd or above head_dim",
                factor_place.At("partial_rotary_factor"));
  }
  const JsonView section_place = TRY(rope.Place("mrope_section"));
  const auto section = TRY(section_place.Ints("mrope_section", 0, kMaxHeadDim));
  if (section) {
    int64_t sum = 0;
    for (const int64_t part : *section) sum += part;
    if (sum != config->rotary_dim / 2) {
      return Fail(Code::kMismatch,
                  "mrope_section sums to " + std::to_string(sum) + ", half the rotary width is " +
                      std::to_string(config->rotary_dim / 2),
                  section_place.At("mrope_section"));
    }
  }
  return {};
}

Status ReadLayers(const JsonView& text, ModelConfig* config) {
  const int64_t count = TRY(text.NeedInt("num_hidden_layers", 1, kMaxLayers));
  const int64_t interval =
      TRY(text.Int("full_attention_interval", 1, kMaxLayers)).value_or(kDefaultInterval);
  const Json* kinds = text.Raw("layer_types");
  if (kinds == nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      config->layers.push_back((i + 1) % interval == 0 ? LayerKind::kAttention
                                                       : LayerKind::kDeltaNet);
    }
    return {};
  }
  if (!kinds->is_array()) {
    return Fail(Code::kMalformed, "expected an array of layer kinds", text.At("layer_types"));
  }
  if (static_cast<int64_t>(kinds->size()) != count) {
    return Fail(Code::kMismatch,
                "layer_types has " + std::to_string(kinds->size()) +
                    " items, num_hidden_layers is " + std::to_string(count),
                text.At("layer_types"));
  }
  for (size_t i = 0; i < kinds->size(); ++i) {
    const Json& kind = (*kinds)[i];
    Locator where = text.At("layer_types");
    where.pointer += "/" + std::to_string(i);
    if (!kind.is_string()) return Fail(Code::kMalformed, "expected a layer kind", where);
    if (kind == "full_attention") {
      config->layers.push_back(LayerKind::kAttention);
    } else if (kind == "linear_attention") {
      config->layers.push_back(LayerKind::kDeltaNet);
    } else {
      return Fail(Code::kUnsupported,
                  "the layer kind is \"" + kind.get<std::string>() +
                      "\"; full_attention and linear_attention are supported",
                  where);
    }
  }
  return {};
}

Status CheckDivides(const JsonView& text, const char* whole, int64_t a, const char* part,
                    int64_t b) {
  if (a % b == 0) return {};
  return Fail(Code::kMismatch,
              std::string(whole) + " is " + std::to_string(a) + ", not a multiple of " + part +
                  " " + std::to_string(b),
              text.At(whole));
}

Status CheckSupported(const JsonView& text, const char* key, bool good, int64_t value,
                      const std::string& expected) {
  if (good) return {};
  return Fail(Code::kUnsupported, "found " + std::to_string(value) + "; supported: " + expected,
              text.At(key));
}

Status ReadEps(const JsonView& text, ModelConfig* config) {
  const double eps = TRY(text.Number("rms_norm_eps")).value_or(kDefaultEps);
  config->eps = static_cast<float>(eps);
  if (!std::isfinite(config->eps) || !(config->eps > 0.0f)) {
    return Fail(Code::kOutOfRange, "rms_norm_eps is not a positive number",
                text.At("rms_norm_eps"));
  }
  return {};
}

Status ReadStart(const JsonView& view, ModelConfig* config) {
  const auto bos = TRY(view.Int("bos_token_id", 0, config->vocab - 1));
  if (bos) config->bos = *bos;
  return {};
}

// Reads a config part by part. A part at fault is noted, and those that rest on it are left out.
class ConfigReader {
 public:
  explicit ConfigReader(ModelConfigReading* out) : out_(*out), config_(out->config) {}

  Status Read(const Json& value, const std::string& file) {
    const JsonView root = TRY(JsonView::Of(value, file));
    const auto inner = TRY(root.Object("text_config"));
    const bool nested = inner.has_value();
    const JsonView text = nested ? *inner : root;
    TRY(CheckFamily(root, text, nested));
    if (nested) {
      for (const char* key : kTextKeys) Good(CheckRootAgrees(root, text, key));
    }
    Good(CheckActivation(text));
    Good(CheckAttentionBias(text));
    Good(CheckAttentionGate(text));
    Good(CheckOutputGate(text));
    const bool sizes = ReadSizes(text);
    const bool vocab = config_.vocab > 0;
    Good(ReadEps(text, &config_));
    const bool layers = Good(ReadLayers(text, &config_));
    const bool mixers = ReadMixers(text);
    out_.sizes = sizes && layers && mixers;
    Good(Assign(root.Bool("tie_word_embeddings"), &config_.tie.root));
    if (nested) Good(Assign(text.Bool("tie_word_embeddings"), &config_.tie.text));
    if (!vocab) return {};
    StopIds stops;
    if (Good(AddStopIds(value, file, config_.vocab, &stops))) config_.eos = stops.values();
    Good(ReadStart(root, &config_));
    if (nested) Good(ReadStart(text, &config_));
    return {};
  }

 private:
  bool Good(const Status& status) {
    if (!status.has_value()) out_.faults.push_back(status.error());
    return status.has_value();
  }

  template <typename T, typename Out>
  static Status Assign(Result<T> from, Out* to) {
    *to = static_cast<Out>(TRY(std::move(from)));
    return {};
  }

  bool ReadSizes(const JsonView& text) {
    bool good = Good(Assign(text.NeedInt("hidden_size", 1, kMaxWidth), &config_.hidden));
    good &= Good(Assign(text.NeedInt("intermediate_size", 1, kMaxWidth), &config_.intermediate));
    good &= Good(Assign(text.NeedInt("vocab_size", 1, kMaxWidth), &config_.vocab));
    Good(Count(text, "max_position_embeddings", kDefaultPositions, kMaxPositions,
               &config_.max_positions));
    return good;
  }

  template <typename Out>
  static Status Count(const JsonView& text, const char* key, int64_t standard, int64_t high,
                      Out* to) {
    *to = static_cast<Out>(TRY(text.Int(key, 1, high)).value_or(standard));
    return {};
  }

  bool ReadMixers(const JsonView& text) {
    const bool heads =
        Good(Assign(text.NeedInt("num_attention_heads", 1, kMaxHeads), &config_.heads));
    const bool kv_heads =
        Good(Assign(text.NeedInt("num_key_value_heads", 1, kMaxHeads), &config_.kv_heads));
    const auto count = [&](const char* key, int64_t standard, int64_t high, int* to) {
      return Good(Count(text, key, standard, high, to));
    };
    const bool head_dim = count("head_dim", kDefaultHeadDim, kMaxHeadDim, &config_.head_dim);
    const bool keys = count("linear_num_key_heads", 16, kMaxHeads, &config_.linear_key_heads);
    const bool values = count("linear_num_value_heads", 32, kMaxHeads, &config_.linear_value_heads);
    const bool key_dim =
        count("linear_key_head_dim", kDeltaNetDim, kMaxHeadDim, &config_.linear_key_dim);
    const bool value_dim =
        count("linear_value_head_dim", kDeltaNetDim, kMaxHeadDim, &config_.linear_value_dim);
    const bool kernel =
        count("linear_conv_kernel_dim", kConvKernel, kMaxHeadDim, &config_.conv_kernel);
    bool good = heads && kv_heads && head_dim && keys && values && key_dim && value_dim && kernel;
    if (heads && kv_heads) {
      good &= Good(CheckDivides(text, "num_attention_heads", config_.heads, "num_key_value_heads",
                                config_.kv_heads));
    }
    if (keys && values) {
      good &= Good(CheckDivides(text, "linear_num_value_heads", config_.linear_value_heads,
                                "linear_num_key_heads", config_.linear_key_heads));
    }
    if (head_dim) Good(ReadRope(text, &config_));
    if (head_dim) {
      good &= Good(CheckSupported(text, "head_dim", config_.head_dim % kHeadBlock == 0,
                                  config_.head_dim, "multiples of 128"));
    }
    if (key_dim) {
      good &=
          Good(CheckSupported(text, "linear_key_head_dim", config_.linear_key_dim == kDeltaNetDim,
                              config_.linear_key_dim, "128"));
    }
    if (value_dim) {
      good &= Good(CheckSupported(text, "linear_value_head_dim",
                                  config_.linear_value_dim == kDeltaNetDim,
                                  config_.linear_value_dim, "128"));
    }
    if (kernel) {
      good &= Good(CheckSupported(text, "linear_conv_kernel_dim",
                                  config_.conv_kernel == kConvKernel, config_.conv_kernel, "4"));
    }
    return good;
  }

  ModelConfigReading& out_;
  ModelConfig& config_;
};

}  // namespace

ModelConfigReading ReadModelConfig(const Json& value, const std::string& file) {
  ModelConfigReading reading;
  const Status read = ConfigReader(&reading).Read(value, file);
  if (!read.has_value()) reading.faults.push_back(read.error());
  return reading;
}

Result<ModelConfig> ModelConfigFromJson(const Json& value, const std::string& file) {
  ModelConfigReading reading = ReadModelConfig(value, file);
  if (!reading.faults.empty()) return Fail(std::move(reading.faults.front()));
  return std::move(reading.config);
}

Result<ModelConfig> ParseModelConfig(std::string_view text, const std::string& file) {
  const Json root = TRY(ParseJson(text, file));
  return ModelConfigFromJson(root, file);
}

}  // namespace hallmark
