// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/drafter_writer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "engine/base/check.h"
#include "engine/base/checked.h"
#include "engine/base/float_types.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

using Json = nlohmann::json;
using Pointer = Json::json_pointer;

constexpr int64_t kGroup = 16;  // channels that share a coefficient

template <typename T>
void Append(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

class Builder {
 public:
  Builder(const SyntheticDrafter& drafter, std::vector<TensorSpec>* tensors)
      : d_(drafter), random_(drafter.seed), tensors_(tensors) {}

  void Build() {
    Linear("fc", d_.hidden * static_cast<int64_t>(d_.targets.size()), d_.hidden);
    Norm("hidden_norm.weight", d_.hidden);
    for (int i = 0; i < d_.layers; ++i) Layer("layers." + std::to_string(i) + ".");
    Norm("norm.weight", d_.hidden);
    if (!d_.second) return;
    const std::string at = "candidate_selector.";
    Random(at + "predecessor_codebook", {d_.vocab, d_.rank}, 0.0f, 1.0f);
    Random(at + "successor_codebook", {d_.vocab, d_.rank}, 0.0f, 1.0f);
    Linear(at + "hidden_projection", d_.hidden, d_.rank);
  }

 private:
  void Layer(const std::string& at) {
    const int64_t query = int64_t{1} * d_.heads * d_.head_dim;
    const int64_t kv = int64_t{1} * d_.kv_heads * d_.head_dim;
    Norm(at + "input_layernorm.weight", d_.hidden);
    if (d_.second) Conv(at + "attention_conv.");
    Linear(at + "self_attn.q_proj", d_.hidden, query);
    Linear(at + "self_attn.k_proj", d_.hidden, kv);
    Linear(at + "self_attn.v_proj", d_.hidden, kv);
    Linear(at + "self_attn.o_proj", query, d_.hidden);
    Norm(at + "self_attn.q_norm.weight", d_.head_dim);
    Norm(at + "self_attn.k_norm.weight", d_.head_dim);
    Norm(at + "post_attention_layernorm.weight", d_.hidden);
    if (d_.second) Conv(at + "mlp_conv.");
    Linear(at + "mlp.gate_proj", d_.hidden, d_.intermediate);
    Linear(at + "mlp.up_proj", d_.hidden, d_.intermediate);
    Linear(at + "mlp.down_proj", d_.intermediate, d_.hidden);
  }

  void Conv(const std::string& at) {
    Random(at + "base_kernel", {2, d_.kernel, d_.hidden}, 0.6f, 0.4f);
    Linear(at + "kernel_projection", d_.hidden, 2 * d_.kernel * (d_.hidden / kGroup));
  }

  void Norm(const std::string& name, int64_t size) { Random(name, {size}, 1.0f, 0.3f); }

  void Random(const std::string& name, std::vector<int64_t> shape, float middle, float spread) {
    if (!d_.data) return tensors_->push_back({name, d_.plain, std::move(shape), ""});
    tensors_->push_back(FloatTensor(name, d_.plain, std::move(shape), [&](int64_t) {
      return middle + spread * random_.NextSigned();
    }));
  }

  // Weights of unit gain: outputs are about as large as inputs.
  void Linear(const std::string& name, int64_t in, int64_t out) {
    const float gain = 1.7f / std::sqrt(static_cast<float>(in));
    if (d_.form == LinearForm::kExl3) return Exl3(name, in, out);
    if (d_.form == LinearForm::kPlain) return Random(name + ".weight", {out, in}, 0.0f, gain);
    TensorSpec words{.name = name + ".weight", .dtype = DType::kU32, .shape = {out, in / 8}};
    for (int64_t i = 0; i < out * (in / 8); ++i) {
      Append(static_cast<uint32_t>(random_.Next() >> 32), &words.bytes);
    }
    tensors_->push_back(std::move(words));
    Random(name + ".scales", {out, in / 64}, gain / 7.5f, gain / 15.0f);
    Random(name + ".biases", {out, in / 64}, -gain, gain / 4.0f);
  }

  void Exl3(const std::string& name, int64_t in, int64_t out) {
    constexpr int64_t kBlock = 128;
    const int64_t k = RoundUp(in, kBlock);
    const int64_t n = RoundUp(out, kBlock);
    TensorSpec trellis{
        .name = name + ".trellis", .dtype = DType::kI16, .shape = {k / 16, n / 16, 64}};
    for (uint64_t i = 0; i < trellis.size() / 2; ++i) Append(random_.NextU16(), &trellis.bytes);
    tensors_->push_back(std::move(trellis));
    const float gain = 1.0f / std::sqrt(static_cast<float>(in));
    const auto scale = [&](const std::string& suffix, int64_t size, float middle) {
      tensors_->push_back(FloatTensor(name + suffix, DType::kF16, {size}, [&](int64_t) {
        const float value = middle * (1.0f + 0.5f * random_.NextSigned());
        return (random_.Next() & 1) != 0 ? -value : value;
      }));
    };
    scale(".suh", k, gain);
    scale(".svh", n, 1.0f);
  }

  const SyntheticDrafter& d_;
  SplitMix64 random_;
  std::vector<TensorSpec>* tensors_;
};

Json Config(const SyntheticDrafter& d) {
  Json config = {
      {"architectures", {d.second ? "DFlash2DraftModel" : "DFlashDraftModel"}},
      {"model_type", "qwen3"},
      {"hidden_size", d.hidden},
      {"intermediate_size", d.intermediate},
      {"num_hidden_layers", d.layers},
      {"num_attention_heads", d.heads},
      {"num_key_value_heads", d.kv_heads},
      {"head_dim", d.head_dim},
      {"hidden_act", "silu"},
      {"is_causal", false},
      {"vocab_size", d.vocab},
      {"num_target_layers", d.target_layers},
      {"rms_norm_eps", 1e-6},
      {"rope_parameters", {{"rope_theta", 10000000}, {"rope_type", "default"}}},
      {"dflash_config",
       {{"block_size", d.block}, {"mask_token_id", d.vocab - 1}, {"target_layer_ids", d.targets}}}};
  if (d.window > 0) {
    config["sliding_window"] = d.window;
    config["use_sliding_window"] = true;
    config["layer_types"] =
        std::vector<std::string>(static_cast<size_t>(d.layers), "sliding_attention");
  }
  if (d.second) {
    config["dflash_config"]["conv_kernel_size"] = d.kernel;
    config["dflash_config"]["conv_group_size"] = kGroup;
    config["dflash_config"]["selector_rank"] = d.rank;
    config["dflash_config"]["selector_top_k"] = d.top_k;
  }
  if (d.form == LinearForm::kExl3) {
    config["quantization_config"] = {{"quant_method", "exl3"}, {"bits", 4}};
  }
  if (d.form == LinearForm::kAffine) {
    config["quantization"] = {{"bits", 4}, {"group_size", 64}};
  }
  return config;
}

}  // namespace

TensorSpec FloatTensor(const std::string& name, DType dtype, std::vector<int64_t> shape,
                       const std::function<float(int64_t)>& values) {
  TensorSpec tensor{.name = name, .dtype = dtype, .shape = std::move(shape)};
  const auto count = static_cast<int64_t>(tensor.size()) / static_cast<int64_t>(DTypeSize(dtype));
  for (int64_t i = 0; i < count; ++i) {
    const float value = values(i);
    if (dtype == DType::kF16) {
      Append(FloatToHalf(value), &tensor.bytes);
    } else if (dtype == DType::kBF16) {
      Append(FloatToBf16(value), &tensor.bytes);
    } else {
      CHECK(dtype == DType::kF32);
      Append(value, &tensor.bytes);
    }
  }
  return tensor;
}

DrafterWriter::DrafterWriter(const SyntheticDrafter& drafter) {
  config_ = Config(drafter).dump(1);
  Builder(drafter, &tensors_).Build();
}

void DrafterWriter::Set(const std::string& pointer, const std::string& json) {
  Json config = Json::parse(config_);
  config[Pointer(pointer)] = Json::parse(json);
  config_ = config.dump(1);
}

void DrafterWriter::Erase(const std::string& pointer) {
  Json config = Json::parse(config_);
  const Pointer at(pointer);
  CHECK(config.contains(at));
  config[at.parent_pointer()].erase(at.back());
  config_ = config.dump(1);
}

TensorSpec& DrafterWriter::Tensor(std::string_view name) {
  const auto at = std::find_if(tensors_.begin(), tensors_.end(),
                               [name](const TensorSpec& tensor) { return tensor.name == name; });
  CHECK(at != tensors_.end());
  return *at;
}

void DrafterWriter::Remove(std::string_view name) {
  tensors_.erase(tensors_.begin() + (&Tensor(name) - tensors_.data()));
}

Status DrafterWriter::Write(const std::string& folder) const {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  std::filesystem::create_directories(folder, error);
  if (error) return Fail(Code::kIo, "cannot make the folder", {.file = folder});
  TRY(WriteText(folder + "/config.json", config_));
  return WriteSafetensors(folder + "/model.safetensors", tensors_);
}

}  // namespace hallmark
