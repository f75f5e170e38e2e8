// SPDX-License-Identifier: Apache-2.0
// Clause: format-accept, format-reject
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstring>

#include "conformance/format/fault.h"
#include "engine/base/random.h"
#include "engine/format/safetensors.h"

namespace hallmark {
namespace {

template <typename T>
T OneOf(SplitMix64& random, std::initializer_list<T> choices) {
  return *(choices.begin() + random.Below(choices.size()));
}

// Seeds of full range, whatever the size of the run so far.
SplitMix64 Random() {
  return SplitMix64(*rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint64_t>()));
}

// Any valid model in which every number of the config matters to some tensor: both kinds of layer
// are present.
SyntheticModel RandomModel(SplitMix64& random) {
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

void Spoil(CheckpointWriter& writer, SplitMix64& random) {
  const uint64_t kind = random.Below(9);
  if (kind < 5) return SpoilTensor(writer, random, kind);
  if (kind == 5) return SpoilConfig(writer, random);
  if (kind == 6) return SpoilIndex(writer, random);
  if (kind == 7 && SpoilValue(writer, random)) return;
  writer.Add({.name = writer.Name("layers.0.mlp.extra.weight"), .dtype = DType::kF16});
}

RC_GTEST_PROP(FormatProperty, RandomValidCheckpointsAreAccepted, ()) {
  SplitMix64 random = Random();
  CheckpointWriter writer(RandomModel(random));
  if (writer.model().quantized && random.Below(2) == 0) writer.AddStorage();
  if (random.Below(2) == 0) writer.Shard(1 + static_cast<int>(random.Below(4)));
  const std::string folder = TestFolder();
  RC_ASSERT(writer.Write(folder, {.spaces = random.Below(9)}).has_value());
  const Verdict verdict = Judge(folder);
  if (verdict.error) RC_FAIL(verdict.error->ToString());
}

// Four faults a checkpoint, each alone: 400 in a run of 100.
RC_GTEST_PROP(FormatProperty, OneFaultInARandomCheckpointIsRefused, ()) {
  SplitMix64 random = Random();
  const SyntheticModel model = RandomModel(random);
  const std::string folder = TestFolder();
  RC_ASSERT(CheckpointWriter(model).Write(folder).has_value());
  RC_ASSERT(!Judge(folder).error.has_value());
  for (int i = 0; i < 4; ++i) {
    CheckpointWriter writer(model);
    Spoil(writer, random);
    RC_ASSERT(writer.Write(folder).has_value());
    const Verdict verdict = Judge(folder);
    RC_ASSERT(verdict.error.has_value());
    RC_ASSERT(verdict.error->code != Code::kInternal);
    RC_ASSERT(verdict.error->where.file.starts_with(folder));
  }
}

std::vector<TensorSpec> RandomTable(SplitMix64& random) {
  std::vector<TensorSpec> tensors;
  const uint64_t count = random.Below(12);
  for (uint64_t i = 0; i < count; ++i) {
    TensorSpec tensor;
    // Unique, and with every kind of character that JSON escapes or UTF-8 spells in several bytes.
    tensor.name =
        std::to_string(i) + OneOf<const char*>(random, {"", "\"", "\\", "/", "\n", "\x01", "\u00e9",
                                                        "\u20ac", "\U0001F600"});
    tensor.dtype = static_cast<DType>(random.Below(16));
    const uint64_t rank = random.Below(4);
    for (uint64_t d = 0; d < rank; ++d) {
      tensor.shape.push_back(static_cast<int64_t>(random.Below(5)));
    }
    for (uint64_t b = 0; b < tensor.size(); ++b) {
      tensor.bytes.push_back(static_cast<char>(random.Next()));
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

RC_GTEST_PROP(FormatProperty, ATableWrittenAndReadBackIsEqual, ()) {
  SplitMix64 random = Random();
  const std::vector<TensorSpec> tensors = RandomTable(random);
  const std::string path = TestFolder() + ".safetensors";
  SafetensorsStyle style{.align_data = random.Below(2) == 0, .spaces = random.Below(9)};
  if (random.Below(2) == 0) style.metadata = {{"a\"\n", "\u20ac"}, {"", ""}};
  RC_ASSERT(WriteSafetensors(path, tensors, style).has_value());
  const auto file = SafetensorsFile::Open(path);
  RC_ASSERT(file.has_value());
  RC_ASSERT(file->tensors().size() == tensors.size());
  RC_ASSERT(file->metadata() == style.metadata);
  for (const TensorSpec& tensor : tensors) {
    const TensorView* view = file->Find(tensor.name);
    RC_ASSERT(view != nullptr);
    RC_ASSERT(view->dtype == tensor.dtype);
    RC_ASSERT(view->shape == tensor.shape);
    RC_ASSERT(view->bytes.size() == tensor.bytes.size());
    RC_ASSERT(tensor.bytes.empty() ||
              std::memcmp(view->bytes.data(), tensor.bytes.data(), tensor.bytes.size()) == 0);
  }
}

RC_GTEST_PROP(FormatProperty, AHeaderWithOneByteChangedIsRefusedOrStillTilesTheFile, ()) {
  SplitMix64 random = Random();
  const std::vector<TensorSpec> tensors = RandomTable(random);
  std::string data;
  for (const TensorSpec& tensor : tensors) data += tensor.bytes;
  const std::string good = SafetensorsText(SafetensorsHeader(tensors), data);
  for (int i = 0; i < 200; ++i) {
    std::string file = good;
    file[random.Below(good.size() - data.size())] = static_cast<char>(random.Next());
    const auto table = ParseSafetensors(std::as_bytes(std::span(file)), "x");
    if (!table) {
      RC_ASSERT(table.error().where.byte.has_value());
      RC_ASSERT(*table.error().where.byte <= file.size());
      continue;
    }
    uint64_t total = 0;
    for (const TensorView& tensor : table->tensors) {
      RC_ASSERT(tensor.file_offset + tensor.bytes.size() <= file.size());
      RC_ASSERT(tensor.elements() * DTypeSize(tensor.dtype) ==
                static_cast<int64_t>(tensor.bytes.size()));
      total += tensor.bytes.size();
    }
    RC_ASSERT(total == data.size());
  }
}

}  // namespace
}  // namespace hallmark
