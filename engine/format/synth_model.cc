// SPDX-License-Identifier: Apache-2.0
#include "engine/format/synth_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/checked.h"
#include "engine/format/quantization_config.h"

namespace hallmark {
namespace {

constexpr int64_t kHeadDim = 256;
constexpr int64_t kLinearDim = 128;
constexpr int64_t kInterval = 4;
constexpr int64_t kConvKernel = 4;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kLeastVocab = 256;
constexpr int64_t kMostVocab = int64_t{1} << 24;
constexpr int kPlainHead = 16;
constexpr int64_t kEndOfTurn = 248046;
constexpr int64_t kMask = 248070;

// How far embeddings lean, in units of their random part: what is an id's own and what all layers
// add turns the direction by a twentieth or so.
constexpr float kLean = 24.0f;
// Logits of this deviation: the best few ids are within e of each other and far above the rest.
constexpr float kHeadGain = 4.0f;

constexpr SynthGeometry kGeometries[] = {
    {"qwen3.5-0.8b", 1024, 3584, 24, 8, 2, 16, 16, 248320, 8},
    {"qwen3.5-2b", 2048, 6144, 24, 8, 2, 16, 16, 248320, 16},
    {"qwen3.5-4b", 2560, 9216, 32, 16, 4, 16, 32, 248320, 16},
    {"qwen3.5-9b", 4096, 12288, 32, 16, 4, 16, 32, 248320, 32},
    {"qwen3.5-27b", 5120, 17408, 64, 24, 4, 16, 48, 248320, 32},
    {"qwen3.6-27b", 5120, 17408, 64, 24, 4, 16, 48, 248320, 32},
    {"qwen3.8-27b", 5120, 17408, 64, 24, 4, 16, 48, 248320, 32},
};

// RMS of a codebook's values over all states.
float RmsOf(Codebook codebook) { return codebook == Codebook::kMul1 ? 1.0f : 1.244f; }

// Widths whose average stays next to the one asked for.
class Widths {
 public:
  explicit Widths(double bits) : bits_(bits), low_(static_cast<int>(std::floor(bits))) {}

  int Take(int64_t weights) {
    const double count = static_cast<double>(weights);
    const double below = std::abs(error_ + count * (low_ - bits_));
    const double above = std::abs(error_ + count * (low_ + 1 - bits_));
    const int width = above < below ? low_ + 1 : low_;
    error_ += count * (width - bits_);
    weights_ += count;
    return width;
  }
  double average() const { return bits_ + error_ / weights_; }

 private:
  double bits_;
  int low_;
  double error_ = 0;  // bits taken beyond the average asked for
  double weights_ = 0;
};

class Builder {
 public:
  explicit Builder(const SynthModelOptions& options)
      : options_(options), g_(options.geometry), widths_(options.bits) {}

  SynthCheckpoint Build() {
    Bell(prefix_ + "embed_tokens.weight", DType::kBF16, {g_.vocab, g_.hidden}, kLean, 1);
    // The mask's row has to lean, or no draft would.
    made_.tensors.back().fill = SynthFill::kLeaning;
    made_.tensors.back().word = static_cast<uint32_t>((SynthMaskId(g_.vocab) + 1) % 4);
    for (int64_t i = 0; i < g_.layers; ++i) Layer(prefix_ + "layers." + std::to_string(i) + ".", i);
    Norm(prefix_ + "norm.weight", g_.hidden, kLastNormSpread);
    if (options_.head_bits == kPlainHead) {
      Bell("lm_head.weight", DType::kF16, {g_.vocab, g_.hidden}, 0, kHeadGain / Root(g_.hidden));
    } else {
      Exl3("lm_head", g_.hidden, g_.vocab, options_.head_bits, kHeadGain);
    }
    made_.bits = widths_.average();
    Config();
    return std::move(made_);
  }

 private:
  struct Projection {
    std::string name;
    int64_t in;
    int64_t out;
  };

  static float Root(int64_t value) { return std::sqrt(static_cast<float>(value)); }

  void Layer(const std::string& at, int64_t index) {
    Norm(at + "input_layernorm.weight", g_.hidden);
    if (index % kInterval == kInterval - 1) {
      Attention(at + "self_attn.");
    } else {
      DeltaNet(at + "linear_attn.");
    }
    Norm(at + "post_attention_layernorm.weight", g_.hidden);
    Group({{at + "mlp.gate_proj", g_.hidden, g_.intermediate},
           {at + "mlp.up_proj", g_.hidden, g_.intermediate}});
    Group({{at + "mlp.down_proj", g_.intermediate, g_.hidden}}, ResidualGain());
  }

  void Attention(const std::string& at) {
    Group({{at + "q_proj", g_.hidden, 2 * g_.heads * kHeadDim},
           {at + "k_proj", g_.hidden, g_.kv_heads * kHeadDim},
           {at + "v_proj", g_.hidden, g_.kv_heads * kHeadDim}});
    Group({{at + "o_proj", g_.heads * kHeadDim, g_.hidden}}, ResidualGain());
    Norm(at + "q_norm.weight", kHeadDim);
    Norm(at + "k_norm.weight", kHeadDim);
  }

  // Decay rates, step sizes and taps lie where trained models have them.
  void DeltaNet(const std::string& at) {
    const int64_t value = g_.value_heads * kLinearDim;
    const int64_t channels = 2 * g_.key_heads * kLinearDim + value;
    Group({{at + "in_proj_qkv", g_.hidden, channels}, {at + "in_proj_z", g_.hidden, value}});
    for (const char* small : {"in_proj_a.weight", "in_proj_b.weight"}) {
      Bell(at + small, DType::kF16, {g_.value_heads, g_.hidden}, 0, 0.5f / Root(g_.hidden));
    }
    Bell(at + "conv1d.weight", DType::kBF16, {channels, 1, kConvKernel}, 0, 0.5f);
    Uniform(at + "A_log", {g_.value_heads}, -0.6f, 3.4f);
    Uniform(at + "dt_bias", {g_.value_heads}, -2.75f, 3.75f);
    Bell(at + "norm.weight", DType::kBF16, {kLinearDim}, 1, 0.1f);
    Group({{at + "out_proj", value, g_.hidden}}, ResidualGain());
  }

  // Of a linear whose outputs join the residual stream, two a layer.
  float ResidualGain() const { return 0.5f / Root(2 * g_.layers); }

  void Group(const std::vector<Projection>& group, float gain = 1) {
    int64_t weights = 0;
    for (const Projection& linear : group) weights += linear.in * linear.out;
    const int width = widths_.Take(weights);
    for (const Projection& linear : group) Exl3(linear.name, linear.in, linear.out, width, gain);
  }

  // W = diag(suh) H W_q H diag(svh): H keeps sizes, suh is about one, and svh brings the codebook's
  // values to gain / sqrt(inputs).
  void Exl3(const std::string& name, int64_t in, int64_t out, int width, float gain) {
    const int64_t k = RoundUp(in, 128);
    const int64_t n = RoundUp(out, 128);
    const float scale = gain / (Root(in) * RmsOf(options_.codebook));
    nlohmann::json stored = nlohmann::json::object();
    const auto add = [&](SynthTensor tensor, const char* torch) {
      stored[tensor.name] = {
          {"shape", tensor.shape}, {"n_bytes", tensor.bytes()}, {"dtype", torch}};
      made_.tensors.push_back(std::move(tensor));
    };
    add({.name = name + ".trellis",
         .dtype = DType::kI16,
         .shape = {k / 16, n / 16, int64_t{16} * width}},
        "torch.int16");
    const auto signed_scale = [&](const char* suffix, int64_t count, float spread) {
      add({.name = name + suffix,
           .dtype = DType::kF16,
           .shape = {count},
           .fill = SynthFill::kSigned,
           .spread = spread},
          "torch.float16");
    };
    signed_scale(".suh", k, 1);
    signed_scale(".svh", n, scale);
    nlohmann::json module = {{"quant_format", "exl3"}, {"bits_per_weight", width}};
    if (options_.codebook != Codebook::k3inst) {
      const bool mcg = options_.codebook == Codebook::kMcg;
      const uint32_t word = mcg ? kMcgMultiplier : kMul1Multiplier;
      module[mcg ? "mcg_multiplier" : "mul1_multiplier"] = word;
      add({.name = name + (mcg ? ".mcg" : ".mul1"),
           .dtype = DType::kI32,
           .fill = SynthFill::kMarker,
           .word = word},
          "torch.int32");
    }
    module["stored_tensors"] = std::move(stored);
    storage_[name] = std::move(module);
  }

  void Bell(const std::string& name, DType dtype, std::vector<int64_t> shape, float middle,
            float spread) {
    made_.tensors.push_back({.name = name,
                             .dtype = dtype,
                             .shape = std::move(shape),
                             .fill = SynthFill::kBell,
                             .middle = middle,
                             .spread = spread});
  }
  void Uniform(const std::string& name, std::vector<int64_t> shape, float middle, float spread) {
    Bell(name, DType::kBF16, std::move(shape), middle, spread);
    made_.tensors.back().fill = SynthFill::kUniform;
  }
  // Zero-centred: the factor is one more.
  void Norm(const std::string& name, int64_t size, float spread = 0.1f) {
    Bell(name, DType::kBF16, {size}, 0, spread);
  }

  void Config() {
    nlohmann::json text = {{"model_type", "qwen3_5_text"},
                           {"hidden_size", g_.hidden},
                           {"intermediate_size", g_.intermediate},
                           {"num_hidden_layers", g_.layers},
                           {"num_attention_heads", g_.heads},
                           {"num_key_value_heads", g_.kv_heads},
                           {"head_dim", kHeadDim},
                           {"vocab_size", g_.vocab},
                           {"linear_num_key_heads", g_.key_heads},
                           {"linear_num_value_heads", g_.value_heads},
                           {"linear_key_head_dim", kLinearDim},
                           {"linear_value_head_dim", kLinearDim},
                           {"linear_conv_kernel_dim", kConvKernel},
                           {"full_attention_interval", kInterval},
                           {"rms_norm_eps", 1e-6},
                           {"hidden_act", "silu"},
                           {"attention_bias", false},
                           {"attn_output_gate", true},
                           {"dtype", "bfloat16"},
                           {"max_position_embeddings", 262144},
                           {"tie_word_embeddings", false},
                           {"rope_parameters",
                            {{"rope_type", "default"},
                             {"rope_theta", 10000000},
                             {"partial_rotary_factor", 0.25},
                             {"mrope_section", {11, 11, 10}},
                             {"mrope_interleaved", true}}}};
    nlohmann::json quantization = {{"quant_method", "exl3"},
                                   {"version", "synthetic"},
                                   {"bits", std::round(made_.bits * 100) / 100},
                                   {"head_bits", options_.head_bits},
                                   {"out_scales", "always"},
                                   {"codebook", std::string(CodebookName(options_.codebook))}};
    const nlohmann::json root = {{"architectures", {"Qwen3_5ForConditionalGeneration"}},
                                 {"model_type", "qwen3_5"},
                                 {"text_config", std::move(text)},
                                 {"tie_word_embeddings", false},
                                 {"eos_token_id", std::min(kEndOfTurn, g_.vocab - 1)},
                                 {"quantization_config", quantization}};
    made_.config = root.dump(2) + "\n";
    quantization["tensor_storage"] = std::move(storage_);
    made_.quantization = quantization.dump(1) + "\n";
  }

  const SynthModelOptions& options_;
  const SynthGeometry& g_;
  const std::string prefix_ = "model.language_model.";
  Widths widths_;
  nlohmann::json storage_ = nlohmann::json::object();
  SynthCheckpoint made_;
};

Status CheckRange(const char* what, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  const auto text = [](double number) {
    const auto whole = static_cast<int64_t>(number);
    return static_cast<double>(whole) == number ? std::to_string(whole) : std::to_string(number);
  };
  return Fail(Code::kOutOfRange, "found " + text(value) + " " + what + ", expected " + text(low) +
                                     " to " + text(high));
}

}  // namespace

std::span<const SynthGeometry> SynthGeometries() { return kGeometries; }

const SynthGeometry* FindSynthGeometry(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kGeometries), std::end(kGeometries),
                   [name](const SynthGeometry& geometry) { return geometry.name == name; });
  return found == std::end(kGeometries) ? nullptr : found;
}

int64_t SynthMaskId(int64_t vocab) { return std::min(kMask, vocab - 2); }

const SynthTensor* SynthCheckpoint::Find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(),
                   [name](const SynthTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Result<SynthCheckpoint> MakeSynthModel(const SynthModelOptions& options) {
  TRY(CheckRange("bits", options.bits, 1, 8));
  if (options.head_bits != kPlainHead) TRY(CheckRange("head bits", options.head_bits, 1, 8));
  TRY(CheckRange("layers", static_cast<double>(options.geometry.layers), 1, kMaxLayers));
  TRY(CheckRange("ids", static_cast<double>(options.geometry.vocab), kLeastVocab, kMostVocab));
  return Builder(options).Build();
}

}  // namespace hallmark
