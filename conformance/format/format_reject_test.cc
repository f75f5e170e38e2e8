// SPDX-License-Identifier: Apache-2.0
// Clause format-reject: the parts of EXL3 groups, the tensors a model needs, its head, and values.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "conformance/format/fault.h"
#include "conformance/harness/paths.h"
#include "engine/base/json.h"
#include "engine/format/exl3_group.h"
#include "engine/format/quantization_config.h"

namespace hallmark {
namespace {

const std::string kText = "model.language_model.";
const std::string kDown = kText + "layers.0.mlp.down_proj";
const std::string kDelta = kText + "layers.0.linear_attn.";
const std::string kAttention = kText + "layers.3.self_attn.";
const std::string kFile = "model.safetensors";

using Writer = CheckpointWriter;

// A fault of one tensor, refused by the inventory at that tensor.
Fault AtTensor(std::string name, Code code, std::string tensor,
               std::function<void(Writer&)> plant) {
  return {.name = std::move(name),
          .plant = std::move(plant),
          .code = code,
          .file = kFile,
          .tensor = std::move(tensor)};
}

// The same with another model as control.
Fault With(SyntheticModel model, Fault fault) {
  fault.model = std::move(model);
  return fault;
}

std::function<void(Writer&)> Reshape(std::string tensor, std::vector<int64_t> shape) {
  return [=](Writer& w) {
    w.Tensor(tensor).shape = shape;
    w.Tensor(tensor).bytes.clear();
  };
}

std::function<void(Writer&)> Retype(std::string tensor, DType dtype) {
  return [=](Writer& w) {
    w.Tensor(tensor).dtype = dtype;
    w.Tensor(tensor).bytes.clear();
  };
}

std::function<void(Writer&)> Add(std::string tensor, DType dtype, std::vector<int64_t> shape) {
  return [=](Writer& w) { w.Add({.name = tensor, .dtype = dtype, .shape = shape}); };
}

std::function<void(Writer&)> Remove(std::string tensor) {
  return [=](Writer& w) { w.Remove(tensor); };
}

std::function<void(Writer&)> SetMarker(std::string tensor, uint32_t value) {
  return [=](Writer& w) { std::memcpy(w.Tensor(tensor).bytes.data(), &value, sizeof(value)); };
}

// A missing tensor is reported for the folder, which as a whole lacks it.
Fault Missing(std::string name, std::string tensor, std::function<void(Writer&)> plant) {
  return {.name = std::move(name),
          .plant = std::move(plant),
          .code = Code::kNotFound,
          .tensor = std::move(tensor)};
}

std::vector<Fault> GroupFaults() {
  const std::string trellis = kDown + ".trellis";
  const std::string suh = kDown + ".suh";
  const std::string svh = kDown + ".svh";
  const std::string mul1 = kDown + ".mul1";
  const std::string mcg = kDown + ".mcg";
  std::vector<Fault> faults = {
      AtTensor("TrellisAsU16", Code::kMismatch, trellis, Retype(trellis, DType::kU16)),
      AtTensor("TrellisOfTwoDimensions", Code::kMismatch, trellis, Reshape(trellis, {128, 48})),
      AtTensor("TrellisOfZeroRows", Code::kMismatch, trellis, Reshape(trellis, {0, 8, 48})),
      AtTensor("LastDimension33", Code::kUnsupported, trellis, Reshape(trellis, {16, 8, 33})),
      AtTensor("LastDimension72", Code::kUnsupported, trellis, Reshape(trellis, {16, 8, 72})),
      AtTensor("InputScalesAsBf16", Code::kMismatch, suh, Retype(suh, DType::kBF16)),
      AtTensor("OutputScalesAsF32", Code::kMismatch, svh, Retype(svh, DType::kF32)),
      AtTensor("OutputScalesTooShort", Code::kMismatch, svh, Reshape(svh, {112})),
      AtTensor("BothFormsOfInputScales", Code::kMismatch, kDown + ".su",
               Add(kDown + ".su", DType::kI16, {16})),
      AtTensor("BothFormsOfOutputScales", Code::kMismatch, kDown + ".sv",
               Add(kDown + ".sv", DType::kI16, {8})),
      AtTensor("BothMarkers", Code::kMismatch, mul1, Add(mcg, DType::kI32, {})),
      AtTensor("MarkerOfAnotherMultiplier", Code::kUnsupported, mul1, SetMarker(mul1, 0x83DCD12Fu)),
      AtTensor("MarkerOfZero", Code::kUnsupported, mul1, SetMarker(mul1, 0)),
      AtTensor("MarkerOfTheOtherCodebook", Code::kUnsupported, mul1,
               SetMarker(mul1, kMcgMultiplier)),
      With({.codebook = Codebook::kMcg},
           AtTensor("McgMarkerOfAnotherMultiplier", Code::kUnsupported, mcg,
                    SetMarker(mcg, 89226354u))),
      AtTensor("MarkerOfShapeZero", Code::kMismatch, mul1, Reshape(mul1, {0})),
      AtTensor("MarkerOfTwoItems", Code::kMismatch, mul1, Reshape(mul1, {2})),
      AtTensor("MarkerAsF32", Code::kMismatch, mul1, Retype(mul1, DType::kF32)),
      With({.k2 = 5},
           AtTensor("HalfWidthWithoutMarker", Code::kUnsupported, trellis, Remove(mul1))),
      With({.k2 = 7}, AtTensor("HalfWidthWithMcg", Code::kUnsupported, trellis,
                               [=](Writer& w) {
                                 w.Rename(mul1, mcg);
                                 SetMarker(mcg, kMcgMultiplier)(w);
                               })),
      AtTensor("BiasOfAnotherLength", Code::kMismatch, kDown + ".bias",
               Add(kDown + ".bias", DType::kF16, {64})),
      AtTensor("BiasAsBf16", Code::kMismatch, kDown + ".bias",
               Add(kDown + ".bias", DType::kBF16, {128})),
      AtTensor("DeadScaleField", Code::kUnsupported, kDown + ".scale",
               Add(kDown + ".scale", DType::kF32, {1})),
      AtTensor("RankSlicedTrellis", Code::kUnsupported, kDown + ".rank0.trellis",
               Add(kDown + ".rank0.trellis", DType::kI16, {16, 8, 48})),
      AtTensor("WeightBesideTrellis", Code::kMismatch, kDown + ".weight",
               Add(kDown + ".weight", DType::kBF16, {128, 200})),
      AtTensor("StoredTransposed", Code::kMismatch, trellis,
               [=](Writer& w) {
                 Reshape(trellis, {8, 16, 48})(w);
                 w.Tensor(suh).name = "x";
                 w.Tensor(svh).name = suh;
                 w.Tensor("x").name = svh;
               }),
      AtTensor("StoredForASmallerModel", Code::kMismatch, trellis,
               [=](Writer& w) {
                 Reshape(trellis, {8, 8, 48})(w);
                 Reshape(suh, {128})(w);
               }),
      AtTensor("StoredForALargerModel", Code::kMismatch, trellis,
               [=](Writer& w) {
                 Reshape(trellis, {24, 8, 48})(w);
                 Reshape(suh, {384})(w);
               }),
      With({.hidden = 192}, AtTensor("StoredWithoutPadding", Code::kMismatch, trellis,
                                     [=](Writer& w) {
                                       Reshape(trellis, {16, 12, 48})(w);
                                       Reshape(svh, {192})(w);
                                     })),
  };
  for (const auto& [name, part] :
       {std::pair("NoTrellis", trellis), {"NoInputScales", suh}, {"NoOutputScales", svh}}) {
    faults.push_back({.name = name,
                      .plant = Remove(part),
                      .code = Code::kNotFound,
                      .file = kFile,
                      .tensor = part});
  }
  return faults;
}

std::vector<Fault> TensorFaults() {
  const SyntheticModel plain = {.quantized = false};
  const std::string a_log = kDelta + "A_log";
  return {
      Missing("NoEmbedding", kText + "embed_tokens.weight", Remove(kText + "embed_tokens.weight")),
      Missing("NoLinear", kDown + ".trellis", [](Writer& w) { w.RemovePrefix(kDown + "."); }),
      Missing("ANameInLowerCase", a_log, [=](Writer& w) { w.Rename(a_log, kDelta + "a_log"); }),
      Missing("DecayAsAnExl3Group", a_log,
              [=](Writer& w) {
                w.Remove(a_log);
                Add(a_log + ".trellis", DType::kI16, {8, 8, 48})(w);
                Add(a_log + ".suh", DType::kF16, {128})(w);
                Add(a_log + ".svh", DType::kF16, {128})(w);
              }),
      AtTensor("DecayAsI8", Code::kMismatch, a_log, Retype(a_log, DType::kI8)),
      AtTensor("DecayAsI32", Code::kMismatch, a_log, Retype(a_log, DType::kI32)),
      AtTensor("ConvolutionInAnotherLayout", Code::kMismatch, kDelta + "conv1d.weight",
               Reshape(kDelta + "conv1d.weight", {512, 4, 1})),
      AtTensor("ConvolutionOfThreeTaps", Code::kMismatch, kDelta + "conv1d.weight",
               Reshape(kDelta + "conv1d.weight", {512, 1, 3})),
      AtTensor("NormOfAnotherLength", Code::kMismatch, kAttention + "q_norm.weight",
               Reshape(kAttention + "q_norm.weight", {64})),
      AtTensor("NormAsF64", Code::kMismatch, kText + "norm.weight",
               Retype(kText + "norm.weight", DType::kF64)),
      AtTensor("EmbeddingOfOtherRows", Code::kMismatch, kText + "embed_tokens.weight",
               Reshape(kText + "embed_tokens.weight", {299, 128})),
      With(plain, AtTensor("PlainMatrixTransposed", Code::kMismatch, kDown + ".weight",
                           Reshape(kDown + ".weight", {200, 128}))),
      With(plain, AtTensor("PlainMatrixAsF8", Code::kMismatch, kDown + ".weight",
                           Retype(kDown + ".weight", DType::kF8E4M3))),
      With(plain, AtTensor("PlainMatrixAsI8", Code::kMismatch, kDown + ".weight",
                           Retype(kDown + ".weight", DType::kI8))),
      With(plain,
           AtTensor("ScalesOfAnotherQuantization", Code::kUnsupported, kDown + ".weight_scale_inv",
                    Add(kDown + ".weight_scale_inv", DType::kF32, {1, 1}))),
      AtTensor("ALayerTooMany", Code::kUnsupported, kText + "layers.4.input_layernorm.weight",
               Add(kText + "layers.4.input_layernorm.weight", DType::kBF16, {128})),
      AtTensor("ATensorOfNoKnownRole", Code::kUnsupported, kDelta + "in_proj_qkvz.weight",
               Add(kDelta + "in_proj_qkvz.weight", DType::kBF16, {768, 128})),
      AtTensor("TheModelUnderTwoPrefixes", Code::kMismatch, "model.embed_tokens.weight",
               Add("model.embed_tokens.weight", DType::kBF16, {300, 128})),
      AtTensor("TwoHeads", Code::kMismatch, "language_model.lm_head.weight",
               Add("language_model.lm_head.weight", DType::kBF16, {300, 128})),
      AtTensor("HeadOfAnotherVocabulary", Code::kMismatch, "lm_head.trellis",
               [](Writer& w) {
                 Reshape("lm_head.trellis", {8, 16, 48})(w);
                 Reshape("lm_head.svh", {256})(w);
               }),
      Missing("UntiedWithoutAHead", "lm_head", [](Writer& w) { w.RemovePrefix("lm_head."); }),
      Missing("NothingSaysTiedAndNoHead", "lm_head",
              [](Writer& w) {
                w.RemovePrefix("lm_head.");
                w.Erase("/tie_word_embeddings");
                w.Erase("/text_config/tie_word_embeddings");
              }),
      {.name = "NoHeadAndTheFlagsDisagree",
       .plant =
           [](Writer& w) {
             w.RemovePrefix("lm_head.");
             w.Set("/tie_word_embeddings", "true");
           },
       .code = Code::kMismatch,
       .file = "config.json",
       .pointer = "/tie_word_embeddings"},
      AtTensor("GroupsWithoutAQuantizationConfig", Code::kMismatch, kDelta + "in_proj_qkv.trellis",
               [](Writer& w) { w.Erase("/quantization_config"); }),
      {.name = "QuantizationConfigWithoutGroups",
       .model = plain,
       .plant = [](Writer& w) { w.Set("/quantization_config", R"({"quant_method":"exl3"})"); },
       .code = Code::kMismatch,
       .file = "config.json",
       .pointer = "/quantization_config/quant_method"},
  };
}

// Sets one element's bits.
template <typename T>
std::function<void(Writer&)> Poke(std::string tensor, size_t index, T bits) {
  return [=](Writer& w) {
    std::memcpy(w.Tensor(tensor).bytes.data() + index * sizeof(T), &bits, sizeof(T));
  };
}

std::vector<Fault> ValueFaults() {
  const auto at = [](std::string name, const std::string& tensor,
                     std::function<void(Writer&)> plant) {
    Fault fault = AtTensor(std::move(name), Code::kOutOfRange, tensor, std::move(plant));
    fault.phase = Phase::kValues;
    return fault;
  };
  const std::string suh = kDown + ".suh";
  const std::string svh = "lm_head.svh";
  const std::string norm = kText + "layers.2.post_attention_layernorm.weight";
  return {
      at("InputScaleOfInfinity", suh, Poke<uint16_t>(suh, 0, 0x7C00)),
      at("InputScaleOfMinusInfinity", suh, Poke<uint16_t>(suh, 255, 0xFC00)),
      at("InputScaleOfNaN", suh, Poke<uint16_t>(suh, 7, 0x7E00)),
      at("InputScaleOfASignallingNaN", suh, Poke<uint16_t>(suh, 7, 0xFC01)),
      at("OutputScaleOfInfinity", svh, Poke<uint16_t>(svh, 383, 0x7C00)),
      at("OutputScaleOfNaN", svh, Poke<uint16_t>(svh, 1, 0x7E00)),
      at("NormOfNaN", norm, Poke<uint16_t>(norm, 3, 0x7FC0)),
      at("FinalNormOfInfinity", kText + "norm.weight",
         Poke<uint16_t>(kText + "norm.weight", 127, 0xFF80)),
      at("DecayOfNaN", kDelta + "A_log", Poke<uint32_t>(kDelta + "A_log", 1, 0x7F800001)),
      at("ConvolutionOfInfinity", kDelta + "conv1d.weight",
         Poke<uint16_t>(kDelta + "conv1d.weight", 2047, 0x7F80)),
      at("QueryNormOfNaN", kAttention + "q_norm.weight",
         Poke<uint16_t>(kAttention + "q_norm.weight", 0, 0x7F81)),
      at("PlainProjectionOfNaN", kDelta + "in_proj_a.weight",
         Poke<uint16_t>(kDelta + "in_proj_a.weight", 5, 0x7E00)),
      at("BiasOfNaN", kDown + ".bias",
         [](Writer& w) {
           w.Add({.name = kDown + ".bias",
                  .dtype = DType::kF16,
                  .shape = {128},
                  .bytes = std::string(254, '\0') + "\x01\x7e"});
         }),
  };
}

class FormatReject : public testing::TestWithParam<Fault> {};

TEST_P(FormatReject, RefusesAfterItsControl) { ExpectRefused(GetParam()); }

std::string NameOf(const testing::TestParamInfo<Fault>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Group, FormatReject, testing::ValuesIn(GroupFaults()), NameOf);
INSTANTIATE_TEST_SUITE_P(Tensor, FormatReject, testing::ValuesIn(TensorFaults()), NameOf);
INSTANTIATE_TEST_SUITE_P(Value, FormatReject, testing::ValuesIn(ValueFaults()), NameOf);

}  // namespace
}  // namespace hallmark
