// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/checkpoint_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/checked.h"
#include "engine/base/float_types.h"
#include "engine/base/random.h"
#include "engine/format/quantization_config.h"

namespace hallmark {
namespace {

using Json = nlohmann::json;
using Pointer = Json::json_pointer;

constexpr const char* kConfig = "config.json";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kStorage = "quantization_config.json";
constexpr int64_t kBlock = 128;

template <typename T>
void Append(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Adds tensors of the model in the converter's order: module by module.
class Builder {
 public:
  Builder(const SyntheticModel& model, std::vector<TensorSpec>* tensors)
      : model_(model), random_(model.seed), tensors_(tensors) {}

  void Build() {
    const SyntheticModel& m = model_;
    Plain(m.prefix + "embed_tokens.weight", m.plain, {m.vocab, m.hidden});
    for (int i = 0; i < m.layers; ++i) {
      const std::string at = m.prefix + "layers." + std::to_string(i) + ".";
      Vector(at + "input_layernorm.weight", m.hidden);
      if ((i + 1) % m.interval == 0) {
        Attention(at + "self_attn.");
      } else {
        DeltaNet(at + "linear_attn.");
      }
      Vector(at + "post_attention_layernorm.weight", m.hidden);
      Mlp(at + "mlp.");
    }
    Vector(m.prefix + "norm.weight", m.hidden);
    if (!m.tied) Linear(m.head, m.hidden, m.vocab, m.quantized && m.quantized_head);
    if (m.mtp) {
      Plain("mtp.fc.weight", m.plain, {m.hidden, 2 * m.hidden});
      Vector("mtp.norm.weight", m.hidden);
      Attention("mtp.layers.0.self_attn.");
    }
    if (m.visual) Plain("model.visual.pos_embed.weight", DType::kBF16, {9, 32});
  }

 private:
  void Attention(const std::string& at) {
    const int64_t query = int64_t{model_.heads} * model_.head_dim;
    const int64_t kv = int64_t{model_.kv_heads} * model_.head_dim;
    Linear(at + "q_proj", model_.hidden, 2 * query, model_.quantized);
    Linear(at + "k_proj", model_.hidden, kv, model_.quantized);
    Linear(at + "v_proj", model_.hidden, kv, model_.quantized);
    Linear(at + "o_proj", query, model_.hidden, model_.quantized);
    Vector(at + "q_norm.weight", model_.head_dim);
    Vector(at + "k_norm.weight", model_.head_dim);
  }

  void DeltaNet(const std::string& at) {
    const int64_t value = kBlock * model_.value_heads;
    const int64_t channels = 2 * kBlock * model_.key_heads + value;
    Linear(at + "in_proj_qkv", model_.hidden, channels, model_.quantized);
    Linear(at + "in_proj_z", model_.hidden, value, model_.quantized);
    const DType small = model_.quantized ? DType::kF16 : model_.plain;
    Plain(at + "in_proj_a.weight", small, {model_.value_heads, model_.hidden});
    Plain(at + "in_proj_b.weight", small, {model_.value_heads, model_.hidden});
    Plain(at + "conv1d.weight", model_.vectors, {channels, 1, 4});
    Plain(at + "A_log", model_.delta, {model_.value_heads});
    Vector(at + "dt_bias", model_.value_heads);
    Plain(at + "norm.weight", model_.delta, {kBlock});
    Linear(at + "out_proj", value, model_.hidden, model_.quantized);
  }

  void Mlp(const std::string& at) {
    Linear(at + "gate_proj", model_.hidden, model_.intermediate, model_.quantized);
    Linear(at + "up_proj", model_.hidden, model_.intermediate, model_.quantized);
    Linear(at + "down_proj", model_.intermediate, model_.hidden, model_.quantized);
  }

  void Vector(const std::string& name, int64_t size) { Plain(name, model_.vectors, {size}); }

  void Linear(const std::string& name, int64_t in, int64_t out, bool quantized) {
    if (!quantized) return Plain(name + ".weight", model_.plain, {out, in});
    const int64_t k = RoundUp(in, kBlock) / 16;
    const int64_t n = RoundUp(out, kBlock) / 16;
    Words(name + ".trellis", {k, n, int64_t{8} * model_.k2});
    if (model_.packed_signs) {
      Words(name + ".su", {k});
      Words(name + ".sv", {n});
    } else {
      Plain(name + ".suh", DType::kF16, {16 * k});
      Plain(name + ".svh", DType::kF16, {16 * n});
    }
    if (model_.codebook == Codebook::k3inst) return;
    const bool mcg = model_.codebook == Codebook::kMcg;
    TensorSpec marker{.name = name + (mcg ? ".mcg" : ".mul1"), .dtype = DType::kI32};
    Append(mcg ? kMcgMultiplier : kMul1Multiplier, &marker.bytes);
    tensors_->push_back(std::move(marker));
  }

  // Random 16-bit words.
  void Words(const std::string& name, std::vector<int64_t> shape) {
    TensorSpec tensor{.name = name, .dtype = DType::kI16, .shape = std::move(shape)};
    for (uint64_t i = 0; model_.data && i < tensor.size() / 2; ++i) {
      Append(random_.NextU16(), &tensor.bytes);
    }
    tensors_->push_back(std::move(tensor));
  }

  // Random values in [-1, 1).
  void Plain(const std::string& name, DType dtype, std::vector<int64_t> shape) {
    TensorSpec tensor{.name = name, .dtype = dtype, .shape = std::move(shape)};
    const uint64_t count = tensor.size() / static_cast<uint64_t>(DTypeSize(dtype));
    for (uint64_t i = 0; model_.data && i < count; ++i) {
      const float value = random_.NextSigned();
      if (dtype == DType::kF16) {
        Append(FloatToHalf(value), &tensor.bytes);
      } else if (dtype == DType::kBF16) {
        Append(FloatToBf16(value), &tensor.bytes);
      } else {
        CHECK(dtype == DType::kF32);
        Append(value, &tensor.bytes);
      }
    }
    tensors_->push_back(std::move(tensor));
  }

  const SyntheticModel& model_;
  SplitMix64 random_;
  std::vector<TensorSpec>* tensors_;
};

Json TextConfig(const SyntheticModel& m) {
  const int rotary = m.head_dim / 4;
  Json text = {{"model_type", "qwen3_5_text"},
               {"hidden_size", m.hidden},
               {"intermediate_size", m.intermediate},
               {"num_hidden_layers", m.layers},
               {"num_attention_heads", m.heads},
               {"num_key_value_heads", m.kv_heads},
               {"head_dim", m.head_dim},
               {"vocab_size", m.vocab},
               {"linear_num_key_heads", m.key_heads},
               {"linear_num_value_heads", m.value_heads},
               {"linear_key_head_dim", 128},
               {"linear_value_head_dim", 128},
               {"linear_conv_kernel_dim", 4},
               {"full_attention_interval", m.interval},
               {"rms_norm_eps", 1e-6},
               {"hidden_act", "silu"},
               {"attention_bias", false},
               {"attn_output_gate", true},
               {"max_position_embeddings", 4096},
               {"tie_word_embeddings", m.tied},
               {"eos_token_id", 1},
               {"rope_parameters",
                {{"rope_type", "default"},
                 {"rope_theta", 10000000},
                 {"partial_rotary_factor", 0.25},
                 {"mrope_section", {rotary / 2 - 2, 1, 1}},
                 {"mrope_interleaved", true}}}};
  if (m.layer_types) {
    for (int i = 0; i < m.layers; ++i) {
      text["layer_types"].push_back((i + 1) % m.interval == 0 ? "full_attention"
                                                              : "linear_attention");
    }
  }
  if (m.mtp) text["mtp_num_hidden_layers"] = 1;
  return text;
}

Json QuantizationBlock(const SyntheticModel& m) {
  return {{"quant_method", "exl3"},
          {"version", "1.4.2"},
          {"bits", m.k2 / 2.0},
          {"head_bits", m.quantized_head && m.k2 % 2 == 0 ? m.k2 / 2 : 16},
          {"codebook", std::string(CodebookName(m.codebook))}};
}

Json Config(const SyntheticModel& m) {
  Json root = m.nested ? Json{{"text_config", TextConfig(m)}} : TextConfig(m);
  root["architectures"] = {m.nested ? "Qwen3_5ForConditionalGeneration" : "Qwen3_5ForCausalLM"};
  root["model_type"] = m.nested ? "qwen3_5" : "qwen3_5_text";
  root["tie_word_embeddings"] = m.tied;
  if (m.visual) root["vision_config"] = {{"model_type", "qwen3_5"}, {"depth", 2}};
  if (m.quantized) root["quantization_config"] = QuantizationBlock(m);
  return root;
}

std::string TorchName(DType dtype) {
  switch (dtype) {
    case DType::kI16:
      return "torch.int16";
    case DType::kI32:
      return "torch.int32";
    default:
      CHECK(dtype == DType::kF16);
      return "torch.float16";
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(const SyntheticModel& model) : model_(model) {
  documents_[kConfig] = Config(model).dump(1);
  Builder(model_, &tensors_).Build();
}

const std::string& CheckpointWriter::Document(const std::string& file) const {
  static const std::string kNone;
  const auto found = documents_.find(file);
  return found == documents_.end() ? kNone : found->second;
}

void CheckpointWriter::SetIn(const std::string& file, const std::string& pointer,
                             const std::string& json) {
  Json document = Json::parse(Document(file));
  document[Pointer(pointer)] = Json::parse(json);
  documents_[file] = document.dump(1);
}

void CheckpointWriter::EraseIn(const std::string& file, const std::string& pointer) {
  Json document = Json::parse(Document(file));
  const Pointer at(pointer);
  CHECK(document.contains(at));
  document[at.parent_pointer()].erase(at.back());
  documents_[file] = document.dump(1);
}

TensorSpec& CheckpointWriter::Tensor(std::string_view name) {
  const auto find = [name](std::vector<TensorSpec>& list) {
    return std::find_if(list.begin(), list.end(),
                        [name](const TensorSpec& tensor) { return tensor.name == name; });
  };
  for (std::vector<TensorSpec>& shard : shards_) {
    if (const auto at = find(shard); at != shard.end()) return *at;
  }
  const auto at = find(tensors_);
  CHECK(at != tensors_.end());
  return *at;
}

void CheckpointWriter::Remove(std::string_view name) {
  const auto is = [name](const TensorSpec& tensor) { return tensor.name == name; };
  size_t removed = std::erase_if(tensors_, is);
  for (std::vector<TensorSpec>& shard : shards_) removed += std::erase_if(shard, is);
  CHECK(removed == 1);
}

void CheckpointWriter::RemovePrefix(std::string_view prefix) {
  CHECK(shards_.empty());
  CHECK(std::erase_if(tensors_, [prefix](const TensorSpec& tensor) {
          return tensor.name.starts_with(prefix);
        }) > 0);
}

void CheckpointWriter::Rename(std::string_view from, const std::string& to) {
  Tensor(from).name = to;
}

std::string CheckpointWriter::ShardFile(int shard) const {
  const auto number = [](size_t value) {
    const std::string digits = std::to_string(value);
    return std::string(5 - digits.size(), '0') + digits;
  };
  return "model-" + number(static_cast<size_t>(shard) + 1) + "-of-" + number(shards_.size()) +
         ".safetensors";
}

void CheckpointWriter::Shard(int count) {
  CHECK(shards_.empty() && count > 0);
  shards_.resize(static_cast<size_t>(count));
  const size_t per_shard = (tensors_.size() + shards_.size() - 1) / shards_.size();
  Json map = Json::object();
  uint64_t total = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    total += tensors_[i].size();
    map[tensors_[i].name] = ShardFile(static_cast<int>(i / per_shard));
    shards_[i / per_shard].push_back(std::move(tensors_[i]));
  }
  tensors_.clear();
  documents_[kIndex] = Json{{"metadata", {{"total_size", total}}}, {"weight_map", map}}.dump(1);
}

std::vector<TensorSpec>& CheckpointWriter::ShardTensors(int shard) {
  return shards_.at(static_cast<size_t>(shard));
}

void CheckpointWriter::PutInShard(int shard, TensorSpec tensor) {
  ShardTensors(shard).push_back(std::move(tensor));
}

void CheckpointWriter::AddStorage() {
  CHECK(model_.quantized && shards_.empty());
  Json block = QuantizationBlock(model_);
  for (const TensorSpec& tensor : tensors_) {
    const size_t dot = tensor.name.rfind('.');
    const std::string suffix = tensor.name.substr(dot + 1);
    const std::array suffixes = {"trellis", "suh", "svh", "su", "sv", "mcg", "mul1"};
    if (std::find(suffixes.begin(), suffixes.end(), suffix) == suffixes.end()) continue;
    Json& module = block["tensor_storage"][tensor.name.substr(0, dot)];
    module["quant_format"] = "exl3";
    module["stored_tensors"][tensor.name] = {
        {"shape", tensor.shape}, {"n_bytes", tensor.size()}, {"dtype", TorchName(tensor.dtype)}};
    if (suffix == "trellis") module["bits_per_weight"] = model_.k2 / 2.0;
    if (suffix == "mcg") module["mcg_multiplier"] = kMcgMultiplier;
    if (suffix == "mul1") module["mul1_multiplier"] = kMul1Multiplier;
  }
  documents_[kStorage] = block.dump(1);
}

Status CheckpointWriter::Write(const std::string& folder, const SafetensorsStyle& style) const {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (!error) std::filesystem::create_directories(folder, error);
  if (error) return Fail(Code::kIo, "cannot make the folder", {.file = folder});
  for (const auto& [name, text] : documents_) {
    if (!text.empty()) TRY(WriteText(folder + "/" + name, text));
  }
  if (shards_.empty()) return WriteSafetensors(folder + "/model.safetensors", tensors_, style);
  for (size_t i = 0; i < shards_.size(); ++i) {
    const std::string name = ShardFile(static_cast<int>(i));
    TRY(WriteSafetensors(folder + "/" + name, shards_[i], style));
  }
  return {};
}

CheckpointWriter HeaderOnly27B() {
  CheckpointWriter writer({.hidden = 5120,
                           .intermediate = 17408,
                           .vocab = 248320,
                           .layers = 64,
                           .heads = 24,
                           .kv_heads = 4,
                           .head_dim = 256,
                           .key_heads = 16,
                           .value_heads = 48,
                           .k2 = 7,
                           .delta = DType::kBF16,
                           .mtp = true,
                           .visual = true,
                           .data = false});
  writer.Tensor("lm_head.trellis").shape = {320, 15520, 96};
  writer.Set("/quantization_config/head_bits", "6");
  writer.Shard(2);
  return writer;
}

}  // namespace hallmark
