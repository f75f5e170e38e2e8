// SPDX-License-Identifier: Apache-2.0
// Clause: format-reject. The structure step on configs, quantization statements, tensors and
// drafters that are broken.
#include <gtest/gtest.h>

#include <cstring>

#include "conformance/harness/checkpoint_writer.h"
#include "conformance/validate/broken_checkpoint.h"
#include "conformance/validate/structure.h"

namespace hallmark {
namespace {

using Copy = CheckpointCopy;
using Plant = std::function<void(Copy&)>;

const std::string kConfig = "config.json";
const std::string kStorage = "quantization_config.json";
const std::string kFile = "model.safetensors";
const std::string kText = "/text_config/";
const std::string kRope = "/text_config/rope_parameters/";
const std::string kModel = "model.language_model.";
const std::string kDelta = kModel + "layers.0.linear_attn.";
const std::string kDown = kModel + "layers.0.mlp.down_proj";

BrokenCheckpoint Set(std::string name, std::string file, std::string pointer, std::string json,
                     std::string check, Code code) {
  return {.name = std::move(name),
          .plant = [=](Copy& c) { c.Set(file, pointer, json); },
          .expected = {{std::move(check), code, file, pointer}}};
}
BrokenCheckpoint Value(std::string name, Code code, std::string pointer, std::string json) {
  return Set(std::move(name), kConfig, std::move(pointer), std::move(json), "config-value", code);
}
BrokenCheckpoint Planted(std::string name, Plant plant, std::vector<Expected> expected) {
  return {.name = std::move(name), .plant = std::move(plant), .expected = std::move(expected)};
}

std::vector<BrokenCheckpoint> Configs() {
  constexpr Code kUnsupported = Code::kUnsupported;
  constexpr Code kOutOfRange = Code::kOutOfRange;
  constexpr Code kMalformed = Code::kMalformed;
  constexpr Code kMismatch = Code::kMismatch;
  std::vector<BrokenCheckpoint> cases = {
      Value("AnotherFamily", kUnsupported, "/model_type", "\"llama\""),
      Value("AMixtureOfExperts", kUnsupported, "/architectures/0", "\"Qwen3_5MoeForCausalLM\""),
      Value("Experts", kUnsupported, kText + "num_experts", "8"),
      Value("AnotherActivation", kUnsupported, kText + "hidden_act", "\"gelu\""),
      Value("BiasedProjections", kUnsupported, kText + "attention_bias", "true"),
      Value("UngatedAttention", kUnsupported, kText + "attn_output_gate", "false"),
      Value("HiddenAsText", kMalformed, kText + "hidden_size", "\"256\""),
      Value("HiddenOfZero", kOutOfRange, kText + "hidden_size", "0"),
      Value("NoVocabulary", kMalformed, kText + "vocab_size", "null"),
      Value("EpsNegative", kOutOfRange, kText + "rms_norm_eps", "-1e-6"),
      Value("LayerKindUnknown", kUnsupported, kText + "layer_types/2", "\"sliding\""),
      Value("LayersUnlikeTheirKinds", kMismatch, kText + "layer_types", "[\"full_attention\"]"),
      Value("HeadsNotAMultiple", kMismatch, kText + "linear_num_value_heads", "3"),
      Value("HeadDimOf192", kUnsupported, kText + "head_dim", "192"),
      Value("ConvolutionOfThree", kUnsupported, kText + "linear_conv_kernel_dim", "3"),
      Value("RopeScaled", kUnsupported, kRope + "rope_type", "\"yarn\""),
      Value("ThetaOfZero", kOutOfRange, kRope + "rope_theta", "0"),
      Value("SectionOfAnotherSum", kMismatch, kRope + "mrope_section", "[1,1,1]"),
      Value("TieAsText", kMalformed, "/tie_word_embeddings", "\"no\""),
      Value("RootStatesAnotherHidden", kMismatch, "/hidden_size", "128"),
      Value("StopIdNegative", kOutOfRange, "/eos_token_id", "-1"),
      Value("StopIdBeyondTheVocabulary", kOutOfRange, "/eos_token_id", "4096"),
      Value("StartIdBeyondTheVocabulary", kOutOfRange, kText + "bos_token_id", "5000"),
      Planted("ThreeFaultsOfOneConfig",
              [](Copy& c) {
                c.Set(kConfig, kText + "hidden_act", "\"gelu\"");
                c.Set(kConfig, kText + "rms_norm_eps", "0");
                c.Set(kConfig, kRope + "rope_theta", "0");
              },
              {{"config-value", kUnsupported, kConfig, kText + "hidden_act"},
               {"config-value", kOutOfRange, kConfig, kText + "rms_norm_eps"},
               {"config-value", kOutOfRange, kConfig, kRope + "rope_theta"}}),
  };
  // The rotary width rests on it, and 192 gives another: the section no longer fits.
  for (BrokenCheckpoint& broken : cases) {
    if (broken.name != "HeadDimOf192") continue;
    broken.expected.insert(broken.expected.begin(),
                           {"config-value", kMismatch, kConfig, kRope + "mrope_section"});
  }
  return cases;
}

std::vector<BrokenCheckpoint> Statements() {
  constexpr Code kMismatch = Code::kMismatch;
  const std::string block = "/quantization_config/";
  const std::string at = "/tensor_storage/" + kDown;
  const std::string stored = at + "/stored_tensors/" + kDown;
  const auto storage = [](std::string name, std::string pointer, std::string json, Code code,
                          std::string place, std::string tensor) {
    BrokenCheckpoint broken = Set(std::move(name), kStorage, std::move(pointer), std::move(json),
                                  "storage-disagrees", code);
    broken.expected[0].pointer = std::move(place);
    broken.expected[0].tensor = std::move(tensor);
    return broken;
  };
  return {
      Set("AnotherMethod", kConfig, block + "quant_method", "\"gptq\"", "quantization-value",
          Code::kUnsupported),
      Set("BitsOfNine", kConfig, block + "bits", "9", "quantization-value", Code::kOutOfRange),
      Set("HeadBitsOfNine", kConfig, block + "head_bits", "9", "quantization-value",
          Code::kOutOfRange),
      Set("CodebookUnknown", kConfig, block + "codebook", "\"mul2\"", "quantization-value",
          Code::kUnsupported),
      Set("BitsAsText", kStorage, "/bits", "\"3.6\"", "quantization-value", Code::kMalformed),
      Set("FilesStateOtherBits", kStorage, "/bits", "3.5", "quantization-disagrees", kMismatch),
      Set("FilesStateOtherCodebooks", kStorage, "/codebook", "\"mcg\"", "quantization-disagrees",
          kMismatch),
      Set("ModuleOfAnotherFormat", kStorage, at + "/quant_format", "\"exl2\"", "quantization-value",
          Code::kUnsupported),
      Set("WidthOfNine", kStorage, at + "/bits_per_weight", "9", "quantization-value",
          Code::kOutOfRange),
      storage("WidthUnlikeTheTrellis", at + "/bits_per_weight", "8", kMismatch,
              at + "/bits_per_weight", kDown + ".trellis"),
      storage("ShapeUnlikeTheTensor", stored + ".suh/shape", "[128]", kMismatch, stored + ".suh",
              kDown + ".suh"),
      storage("DtypeUnlikeTheTensor", stored + ".suh/dtype", "\"torch.bfloat16\"", kMismatch,
              stored + ".suh", kDown + ".suh"),
      storage("BytesUnlikeTheTensor", stored + ".suh/n_bytes", "1", kMismatch, stored + ".suh",
              kDown + ".suh"),
      storage("StoredTensorThatNobodyHolds", stored + ".bias",
              R"({"shape":[256],"dtype":"torch.float16"})", kMismatch, stored + ".bias",
              kDown + ".bias"),
      storage("MultiplierOfAnotherCodebook", at + "/mcg_multiplier", "1", Code::kUnsupported,
              at + "/mcg_multiplier", kDown + ".mcg"),
      Planted("HeadBitsUnlikeTheHead",
              [](Copy& c) {
                c.Set(kConfig, "/quantization_config/head_bits", "8");
                c.Set(kStorage, "/head_bits", "8");
              },
              {{"stated-bits", kMismatch, kStorage, "/head_bits", "lm_head.trellis"}}),
      Planted("NoStorage", [](Copy& c) { c.RemoveFile(kStorage); },
              {{"storage-missing", Code::kNotFound, kStorage}}),
      Planted("NoStatementAtAll",
              [](Copy& c) {
                c.RemoveFile(kStorage);
                c.Erase(kConfig, "/quantization_config");
              },
              {{"exl3-unstated", kMismatch, kFile, "", kDelta + "in_proj_qkv.trellis"}}),
  };
}

Plant Reshape(std::string tensor, std::vector<int64_t> shape) {
  return [=](Copy& c) {
    c.RemoveFile(kStorage);
    c.Tensor(tensor).shape = shape;
    c.Tensor(tensor).bytes.clear();
  };
}
Plant Retype(std::string tensor, DType dtype) {
  return [=](Copy& c) {
    c.RemoveFile(kStorage);
    c.Tensor(tensor).dtype = dtype;
  };
}
Plant Lack(std::string tensor) {
  return [=](Copy& c) {
    c.RemoveFile(kStorage);
    c.Remove(tensor);
  };
}
Plant AddOne(std::string tensor, DType dtype, std::vector<int64_t> shape) {
  return [=](Copy& c) { c.Add({.name = tensor, .dtype = dtype, .shape = shape}); };
}

std::vector<BrokenCheckpoint> Tensors() {
  constexpr Code kMismatch = Code::kMismatch;
  constexpr Code kNotFound = Code::kNotFound;
  constexpr Code kUnsupported = Code::kUnsupported;
  const auto form = [](std::string name, Code code, std::string tensor, Plant plant) {
    return Planted(std::move(name), std::move(plant),
                   {{"tensor-form", code, kFile, "", std::move(tensor)}});
  };
  const auto missing = [](std::string name, std::string tensor, Plant plant) {
    return Planted(std::move(name), std::move(plant),
                   {{"missing-tensor", Code::kNotFound, "", "", std::move(tensor)}});
  };
  const auto marker = [](uint32_t value) {
    return
        [=](Copy& c) { std::memcpy(c.Tensor(kDown + ".mcg").bytes.data(), &value, sizeof(value)); };
  };
  const std::string trellis = kDown + ".trellis";
  const std::string a_log = kDelta + "A_log";
  return {
      form("TrellisAsU16", kMismatch, trellis, Retype(trellis, DType::kU16)),
      form("TrellisOfTwoDimensions", kMismatch, trellis, Reshape(trellis, {48, 1024})),
      form("WidthOf33Words", kUnsupported, trellis, Reshape(trellis, {48, 16, 33})),
      form("HalfWidthWithoutMul1", kUnsupported, trellis, Reshape(trellis, {48, 16, 40})),
      form("TrellisOfASmallerModel", kMismatch, kDown + ".suh", Reshape(trellis, {40, 16, 64})),
      form("ScalesAsBf16", kMismatch, kDown + ".suh", Retype(kDown + ".suh", DType::kBF16)),
      form("ScalesTooShort", kMismatch, kDown + ".svh", Reshape(kDown + ".svh", {128})),
      form("NoInputScales", kNotFound, kDown + ".suh", Lack(kDown + ".suh")),
      form("NoTrellis", kNotFound, trellis, Lack(trellis)),
      form("WrongMarker", kUnsupported, kDown + ".mcg", marker(0xCBAC1FEEu)),
      form("MarkerOfZero", kUnsupported, kDown + ".mcg", marker(0)),
      form("MarkerOfTwoItems", kMismatch, kDown + ".mcg", Reshape(kDown + ".mcg", {2})),
      form("BothMarkers", kMismatch, kDown + ".mul1", AddOne(kDown + ".mul1", DType::kI32, {})),
      form("BothFormsOfScales", kMismatch, kDown + ".su", AddOne(kDown + ".su", DType::kI16, {48})),
      form("WeightBesideTrellis", kMismatch, kDown + ".weight",
           AddOne(kDown + ".weight", DType::kBF16, {256, 768})),
      form("PartOfADerivedFormat", kUnsupported, kDown + ".rank0",
           AddOne(kDown + ".rank0", DType::kI16, {1})),
      form("BiasOfAnotherLength", kMismatch, kDown + ".bias",
           AddOne(kDown + ".bias", DType::kF16, {64})),
      form("NormOfAnotherLength", kMismatch, kModel + "norm.weight",
           Reshape(kModel + "norm.weight", {255})),
      form("DecayAsI8", kMismatch, a_log, Retype(a_log, DType::kI8)),
      form("EmbeddingOfOtherRows", kMismatch, kModel + "embed_tokens.weight",
           Reshape(kModel + "embed_tokens.weight", {4095, 256})),
      form("TwoHeads", kMismatch, "language_model.lm_head.weight",
           AddOne("language_model.lm_head.weight", DType::kBF16, {4096, 256})),
      missing("NoDecay", a_log, Lack(a_log)),
      missing("NoFinalNorm", kModel + "norm.weight", Lack(kModel + "norm.weight")),
      missing("NoHead", "lm_head",
              [](Copy& c) {
                c.RemoveFile(kStorage);
                c.RemovePrefix("lm_head.");
              }),
      missing("ALayerTooFew", kModel + "layers.7.input_layernorm.weight",
              [](Copy& c) {
                c.RemoveFile(kStorage);
                c.RemovePrefix(kModel + "layers.7.");
              }),
      Planted("ALayerTooMany",
              [](Copy& c) {
                c.Add({.name = kModel + "layers.8.input_layernorm.weight",
                       .dtype = DType::kBF16,
                       .shape = {256}});
                c.Add({.name = kModel + "layers.9.input_layernorm.weight",
                       .dtype = DType::kBF16,
                       .shape = {256}});
              },
              {{"unknown-tensor", kUnsupported, kFile, "",
                kModel + "layers.8.input_layernorm.weight"}}),
      Planted("ATensorOfNoRole", AddOne(kDelta + "extra.weight", DType::kBF16, {2}),
              {{"unknown-tensor", kUnsupported, kFile, "", kDelta + "extra.weight"}}),
      Planted("ANameInLowerCase",
              [=](Copy& c) {
                c.RemoveFile(kStorage);
                c.Rename(a_log, kDelta + "a_log");
              },
              {{"missing-tensor", kNotFound, "", "", a_log},
               {"unknown-tensor", kUnsupported, kFile, "", kDelta + "a_log"}}),
      Planted("TwoModels", AddOne("model.embed_tokens.weight", DType::kBF16, {4096, 256}),
              {{"two-models", kMismatch, kFile, "", "model.embed_tokens.weight"}}),
      Planted("NoHeadAndTheFlagsDisagree",
              [](Copy& c) {
                c.RemoveFile(kStorage);
                c.RemovePrefix("lm_head.");
                c.Set(kConfig, "/tie_word_embeddings", "true");
              },
              {{"tensor-form", kMismatch, kConfig, "/tie_word_embeddings"}}),
      Planted("TiedInWordsWithAHead",
              [](Copy& c) {
                c.Set(kConfig, "/tie_word_embeddings", "true");
                c.Set(kConfig, "/text_config/tie_word_embeddings", "true");
              },
              {{"tied-with-head", kMismatch, kConfig, "/tie_word_embeddings"}}),
      Planted("PredictionPart", AddOne("mtp.norm.weight", DType::kBF16, {256}),
              {{"unused-part", kUnsupported, "", "", "mtp."}}),
      Planted("FourFaultsAtOnce",
              [=](Copy& c) {
                Retype(trellis, DType::kU16)(c);
                c.Remove(a_log);
                c.Tensor(kModel + "norm.weight").shape = {128, 2};
                c.Add({.name = "x.weight", .dtype = DType::kF16, .shape = {1}});
              },
              {{"missing-tensor", kNotFound, "", "", a_log},
               {"tensor-form", kMismatch, kFile, "", trellis},
               {"tensor-form", kMismatch, kFile, "", kModel + "norm.weight"},
               {"unknown-tensor", kUnsupported, kFile, "", "x.weight"}}),
  };
}

std::vector<BrokenCheckpoint> Drafters() {
  constexpr Code kMismatch = Code::kMismatch;
  const auto of = [](BrokenCheckpoint broken) {
    broken.drafter = true;
    return broken;
  };
  const auto own = "/dflash_config/";
  return {
      of(Value("BlockOfOne", Code::kOutOfRange, std::string(own) + "block_size", "1")),
      of(Planted("NoTheta", [](Copy& c) { c.Erase(kConfig, "/rope_parameters/rope_theta"); },
                 {{"config-value", Code::kMalformed, kConfig, "/rope_theta"}})),
      of(Value("MaskOutsideTheVocabulary", Code::kOutOfRange, std::string(own) + "mask_token_id",
               "4096")),
      of(Set("TheMaskEndsTexts", kConfig, std::string(own) + "mask_token_id", "4070",
             "drafter-mask-is-a-stop", kMismatch)),
      of(Value("AnotherActivation", Code::kUnsupported, "/hidden_act", "\"gelu\"")),
      of(Planted("TheTargetHasOtherLayers",
                 [](Copy& c) { c.Set(kConfig, "/num_target_layers", "9"); },
                 {{"drafter-mismatch", kMismatch, kConfig, "/num_target_layers"}})),
      of(Planted("NoFusion", [](Copy& c) { c.RemovePrefix("fc."); },
                 {{"missing-tensor", Code::kNotFound, "", "", "fc.trellis"}})),
      of(Planted("NormOfAnotherLength",
                 [](Copy& c) {
                   c.Tensor("norm.weight").shape = {255};
                   c.Tensor("norm.weight").bytes.clear();
                 },
                 {{"tensor-form", kMismatch, kFile, "", "norm.weight"}})),
      of(Planted("AnEmbeddingOfItsOwn",
                 [](Copy& c) {
                   c.Add({.name = "embed_tokens.weight", .dtype = DType::kF16, .shape = {1}});
                 },
                 {{"unknown-tensor", Code::kUnsupported, kFile, "", "embed_tokens.weight"}})),
      of(Planted("NoLicence", [](Copy& c) { c.RemoveFile("LICENSE"); },
                 {{"licence-missing", Code::kNotFound, ""}})),
  };
}

class StructureModel : public testing::TestWithParam<BrokenCheckpoint> {};

TEST_P(StructureModel, FindsTheFaultAndNoOther) { ExpectFound(GetParam()); }

std::string NameOf(const testing::TestParamInfo<BrokenCheckpoint>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Config, StructureModel, testing::ValuesIn(Configs()), NameOf);
INSTANTIATE_TEST_SUITE_P(Statement, StructureModel, testing::ValuesIn(Statements()), NameOf);
INSTANTIATE_TEST_SUITE_P(Tensor, StructureModel, testing::ValuesIn(Tensors()), NameOf);
INSTANTIATE_TEST_SUITE_P(Drafter, StructureModel, testing::ValuesIn(Drafters()), NameOf);

// The golden model has every width and every codebook, so that no statement about it is wrong.
TEST(StructureModel, HoldsStatedBitsAndCodebookAgainstTheTensors) {
  CheckpointWriter writer({.k2 = 6, .codebook = Codebook::kMul1});
  writer.Set("/quantization_config/bits", "4.5");
  writer.Set("/quantization_config/codebook", "\"mcg\"");
  ASSERT_TRUE(writer.Write(ScratchFolder()).has_value());
  const auto report = ValidateStructure({.folder = ScratchFolder()}, {});
  ASSERT_TRUE(report.has_value());
  std::vector<std::string> pointers;
  for (const Finding& finding : report->findings) {
    EXPECT_NE(finding.severity, Severity::kError) << finding.error.ToString();
    if (finding.check.starts_with("stated-")) pointers.push_back(finding.error.where.pointer);
  }
  EXPECT_EQ(pointers, (std::vector<std::string>{"/quantization_config/bits",
                                                "/quantization_config/codebook"}));
}

TEST(StructureModel, CountsWhatIsTooMuchToList) {
  CheckpointCopy copy = CheckpointCopy::Complete();
  for (int i = 0; i < 120; ++i) {
    copy.Add({.name = "x." + std::to_string(i), .dtype = DType::kF16, .shape = {1}});
  }
  copy.Write(ScratchFolder());
  const auto report = ValidateStructure({.folder = ScratchFolder()}, {});
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->findings.size(), 50u);
  EXPECT_NE(report->findings.back().error.message.find("70 more"), std::string::npos);
}

}  // namespace
}  // namespace hallmark
