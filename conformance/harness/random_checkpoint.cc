// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/random_checkpoint.h"

#include <array>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

namespace hallmark {
namespace {

template <typename T>
T OneOf(SplitMix64& random, std::initializer_list<T> choices) {
  return *(choices.begin() + random.Below(choices.size()));
}

bool IsUnused(const TensorSpec& tensor) {
  return tensor.name.starts_with("mtp.") || tensor.name.starts_with("model.visual.");
}
bool IsMarker(const TensorSpec& tensor) { return tensor.dtype == DType::kI32; }

std::string AnyUsedTensor(const CheckpointWriter& writer, SplitMix64& random) {
  for (;;) {
    const TensorSpec& tensor = writer.tensors()[random.Below(writer.tensors().size())];
    if (!IsUnused(tensor)) return tensor.name;
  }
}

// A type of the same size that no tensor of a model may have.
DType Spoiled(DType dtype) {
  switch (DTypeSize(dtype)) {
    case 2:
      return DType::kU16;
    default:
      return DType::kU32;
  }
}

void SpoilTensor(CheckpointWriter& writer, SplitMix64& random, uint64_t kind) {
  TensorSpec& tensor = writer.Tensor(AnyUsedTensor(writer, random));
  switch (kind) {
    case 0:
      tensor.dtype = Spoiled(tensor.dtype);
      break;
    case 1:
      // A scalar grows a second item, anything else one more in some dimension.
      if (tensor.shape.empty()) {
        tensor.shape = {2};
      } else {
        ++tensor.shape[random.Below(tensor.shape.size())];
      }
      tensor.bytes.clear();
      break;
    case 2:
      tensor.name += OneOf<const char*>(random, {"x", ".x", "_", " "});
      break;
    case 3:
      writer.Add(tensor);
      break;
    default:
      // Without its marker a whole width is the first codebook's: no fault.
      if (IsMarker(tensor)) {
        tensor.bytes[random.Below(4)] ^= 0x10;
      } else {
        writer.Remove(std::string(tensor.name));
      }
  }
}

// Makes one number of the config disagree with the tensors.
void SpoilConfig(CheckpointWriter& writer, SplitMix64& random) {
  const SyntheticModel& model = writer.model();
  const std::string at = model.nested ? "/text_config/" : "/";
  const std::array<std::pair<const char*, int64_t>, 9> keys = {{
      {"hidden_size", model.hidden + 128},
      {"intermediate_size", model.intermediate + 128},
      {"vocab_size", model.vocab + 128},
      {"num_hidden_layers", model.layers + 1},
      {"num_attention_heads", 2 * model.heads},
      {"num_key_value_heads", 2 * model.kv_heads},
      {"head_dim", 3 * model.head_dim},
      {"linear_num_key_heads", 2 * model.key_heads},
      {"linear_num_value_heads", 2 * model.value_heads},
  }};
  const auto& [key, value] = keys[random.Below(keys.size())];
  writer.Set(at + key, std::to_string(value));
}

// Makes one scale or norm infinite or not a number.
bool SpoilValue(CheckpointWriter& writer, SplitMix64& random) {
  TensorSpec& tensor = writer.Tensor(AnyUsedTensor(writer, random));
  const bool scale = tensor.name.ends_with(".suh") || tensor.name.ends_with(".svh");
  const bool norm = tensor.name.ends_with("norm.weight");
  if ((!scale && !norm) || tensor.bytes.empty()) return false;
  const auto size = static_cast<size_t>(DTypeSize(tensor.dtype));
  const size_t index = random.Below(tensor.bytes.size() / size);
  // All exponent bits of any of the three types: a quiet NaN with the sign set.
  std::memset(tensor.bytes.data() + index * size, 0xFF, size);
  return true;
}

void SpoilIndex(CheckpointWriter& writer, SplitMix64& random) {
  const std::string file = "model.safetensors.index.json";
  const std::string name = AnyUsedTensor(writer, random);
  const uint64_t kind = random.Below(3);
  writer.Shard(2);
  if (kind == 0) writer.EraseIn(file, "/weight_map/" + name);
  if (kind == 1) writer.SetIn(file, "/weight_map/" + name, "\"model-00003-of-00002.safetensors\"");
  if (kind == 2) writer.Remove(name);
}

}  // namespace

SyntheticModel RandomCheckpointModel(SplitMix64& random) {
  SyntheticModel model;
  model.hidden = OneOf<int64_t>(random, {64, 128, 200, 256});
  model.intermediate = 1 + static_cast<int64_t>(random.Below(400));
  model.vocab = 16 + static_cast<int64_t>(random.Below(500));
  model.interval = 2 + static_cast<int>(random.Below(2));
  model.layers = model.interval + static_cast<int>(random.Below(2));
  model.kv_heads = 1 + static_cast<int>(random.Below(2));
  model.heads = model.kv_heads * (1 + static_cast<int>(random.Below(3)));
  model.head_dim = OneOf(random, {128, 256});
  model.key_heads = 1 + static_cast<int>(random.Below(2));
  model.value_heads = model.key_heads * (1 + static_cast<int>(random.Below(3)));
  model.quantized = random.Below(4) != 0;
  model.codebook = OneOf(random, {Codebook::k3inst, Codebook::kMcg, Codebook::kMul1});
  model.k2 = OneOf(random, {2, 4, 6, 8, 10, 12, 14, 16});
  if (model.codebook == Codebook::kMul1) model.k2 = OneOf(random, {2, 3, 5, 6, 7, 8, 16});
  model.packed_signs = random.Below(4) == 0;
  model.quantized_head = random.Below(2) == 0;
  model.tied = random.Below(3) == 0;
  model.plain = OneOf(random, {DType::kBF16, DType::kF16, DType::kF32});
  model.vectors = OneOf(random, {DType::kBF16, DType::kF16, DType::kF32});
  model.delta = OneOf(random, {DType::kBF16, DType::kF16, DType::kF32});
  model.nested = random.Below(2) == 0;
  model.prefix =
      OneOf<const char*>(random, {"model.", "model.language_model.", "language_model.model."});
  model.head = OneOf<const char*>(random, {"lm_head", "language_model.lm_head"});
  model.layer_types = random.Below(2) == 0;
  model.mtp = random.Below(3) == 0;
  model.visual = random.Below(3) == 0;
  model.data = random.Below(4) == 0;
  model.seed = random.Next();
  return model;
}

void SpoilCheckpoint(CheckpointWriter& writer, SplitMix64& random) {
  const uint64_t kind = random.Below(9);
  if (kind < 5) return SpoilTensor(writer, random, kind);
  if (kind == 5) return SpoilConfig(writer, random);
  if (kind == 6) return SpoilIndex(writer, random);
  if (kind == 7 && SpoilValue(writer, random)) return;
  writer.Add({.name = writer.Name("layers.0.mlp.extra.weight"), .dtype = DType::kF16});
}

}  // namespace hallmark
