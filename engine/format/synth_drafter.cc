// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/format/linear.h"
#include "engine/format/synth_model.h"

namespace hallmark {
namespace {

constexpr int64_t kLayers = 5;
constexpr int64_t kHeadDim = 128;
constexpr int64_t kKernel = 2;
constexpr int64_t kGroup = 16;
constexpr int64_t kRank = 256;
constexpr int64_t kTaps = 5;
// Of a linear whose outputs join the residual stream: two a layer, all of them about as large as
// one id's random part.
constexpr float kResidualGain = 0.316f;

// Layers whose outputs are read; none after the last but one.
std::vector<int64_t> TapsOf(int64_t layers) {
  if (layers == 64) return {5, 19, 33, 47, 61};
  const int64_t count = std::min(kTaps, layers - 1);
  std::vector<int64_t> taps;
  for (int64_t i = 0; i < count; ++i) {
    taps.push_back(count == 1 ? 0 : i * (layers - 2) / (count - 1));
  }
  return taps;
}

class Builder {
 public:
  Builder(const SynthGeometry& target, SynthDrafterWeights weights)
      : g_(target), weights_(weights), taps_(TapsOf(target.layers)) {}

  SynthCheckpoint Build() {
    Linear("fc", g_.hidden * static_cast<int64_t>(taps_.size()), g_.hidden);
    Norm("hidden_norm.weight", g_.hidden);
    for (int64_t i = 0; i < kLayers; ++i) Layer("layers." + std::to_string(i) + ".");
    Norm("norm.weight", g_.hidden, kLastNormSpread);
    // Scores of the selector are small beside logits: no guess of its own outweighs what both see.
    for (const char* codebook : {"predecessor_codebook", "successor_codebook"}) {
      Bell(std::string("candidate_selector.") + codebook, {g_.vocab, kRank}, 0, 0.03f);
    }
    Linear("candidate_selector.hidden_projection", g_.hidden, kRank);
    made_.config = Config();
    made_.bits = weights_ == SynthDrafterWeights::kBf16 ? 16 : 4.5;
    return std::move(made_);
  }

 private:
  void Layer(const std::string& at) {
    const int64_t query = g_.draft_heads * kHeadDim;
    const int64_t kv = query / 4;
    Norm(at + "input_layernorm.weight", g_.hidden);
    Conv(at + "attention_conv.");
    Linear(at + "self_attn.q_proj", g_.hidden, query);
    Linear(at + "self_attn.k_proj", g_.hidden, kv);
    Linear(at + "self_attn.v_proj", g_.hidden, kv);
    Linear(at + "self_attn.o_proj", query, g_.hidden, kResidualGain);
    Norm(at + "self_attn.q_norm.weight", kHeadDim);
    Norm(at + "self_attn.k_norm.weight", kHeadDim);
    Norm(at + "post_attention_layernorm.weight", g_.hidden);
    Conv(at + "mlp_conv.");
    Linear(at + "mlp.gate_proj", g_.hidden, g_.intermediate);
    Linear(at + "mlp.up_proj", g_.hidden, g_.intermediate);
    Linear(at + "mlp.down_proj", g_.intermediate, g_.hidden, kResidualGain);
  }

  void Conv(const std::string& at) {
    Bell(at + "base_kernel", {2, kKernel, g_.hidden}, 0.5f, 0.2f);
    Linear(at + "kernel_projection", g_.hidden, 2 * kKernel * (g_.hidden / kGroup), 0.1f);
  }

  void Norm(const std::string& name, int64_t size, float spread = 0.1f) {
    Bell(name, {size}, 1, spread);
  }

  // Outputs `gain` times as large as inputs.
  void Linear(const std::string& name, int64_t in, int64_t out, float gain = 1) {
    const float spread = gain / std::sqrt(static_cast<float>(in));
    if (weights_ == SynthDrafterWeights::kBf16) {
      return Bell(name + ".weight", {out, in}, 0, spread);
    }
    made_.tensors.push_back(
        {.name = name + ".weight", .dtype = DType::kU32, .shape = {out, in / kAffineWordValues}});
    // s q + b over q = 0 .. 15 has mean zero and deviation 4.61 s.
    const float scale = spread / 4.61f;
    for (const auto& [suffix, value] : {std::pair{".scales", scale}, {".biases", -7.5f * scale}}) {
      Bell(name + suffix, {out, in / kAffineGroup}, value, 0);
      made_.tensors.back().fill = SynthFill::kConstant;
    }
  }

  void Bell(const std::string& name, std::vector<int64_t> shape, float middle, float spread) {
    made_.tensors.push_back({.name = name,
                             .dtype = DType::kBF16,
                             .shape = std::move(shape),
                             .fill = SynthFill::kBell,
                             .middle = middle,
                             .spread = spread});
  }

  std::string Config() const {
    nlohmann::json config = {
        {"architectures", {"DFlash2DraftModel"}},
        {"model_type", "qwen3"},
        {"dtype", "bfloat16"},
        {"hidden_size", g_.hidden},
        {"intermediate_size", g_.intermediate},
        {"num_hidden_layers", kLayers},
        {"num_attention_heads", g_.draft_heads},
        {"num_key_value_heads", g_.draft_heads / 4},
        {"head_dim", kHeadDim},
        {"attention_bias", false},
        {"hidden_act", "silu"},
        {"is_causal", false},
        {"vocab_size", g_.vocab},
        {"num_target_layers", g_.layers},
        {"max_position_embeddings", 262144},
        {"rms_norm_eps", 1e-6},
        {"rope_parameters", {{"rope_theta", 10000000}, {"rope_type", "default"}}},
        {"sliding_window", 2048},
        {"use_sliding_window", true},
        {"max_window_layers", kLayers},
        {"layer_types", std::vector<std::string>(kLayers, "sliding_attention")},
        {"tie_word_embeddings", false},
        {"dflash_config",
         {{"block_size", 8},
          {"mask_token_id", SynthMaskId(g_.vocab)},
          {"target_layer_ids", taps_},
          {"conv_kernel_size", kKernel},
          {"conv_group_size", kGroup},
          {"selector_rank", kRank},
          {"selector_top_k", 16}}}};
    if (weights_ == SynthDrafterWeights::kAffine4) {
      config["quantization"] = {{"bits", 4}, {"group_size", kAffineGroup}};
    }
    return config.dump(2) + "\n";
  }

  const SynthGeometry& g_;
  const SynthDrafterWeights weights_;
  const std::vector<int64_t> taps_;
  SynthCheckpoint made_;
};

}  // namespace

Result<SynthCheckpoint> MakeSynthDrafter(const SynthGeometry& target, SynthDrafterWeights weights) {
  if (target.layers < 2) {
    return Fail(Code::kOutOfRange, "found a target of " + std::to_string(target.layers) +
                                       " layers, expected 2 or more for a drafter");
  }
  return Builder(target, weights).Build();
}

}  // namespace hallmark
