// SPDX-License-Identifier: Apache-2.0
// Clause format-reject: config.json, generation_config.json and quantization configs.
#include <gtest/gtest.h>

#include "conformance/format/fault.h"

namespace hallmark {
namespace {

// The pointer of the first item of the first item ..., `depth` arrays deep.
std::string FirstItems(int depth) {
  std::string pointer;
  for (int i = 0; i < depth; ++i) pointer += "/0";
  return pointer;
}

using Writer = CheckpointWriter;

// Sets a value of a document and expects the refusal at that very pointer.
Fault SetIn(std::string name, Code code, std::string file, std::string pointer, std::string json) {
  return {.name = std::move(name),
          .plant = [=](Writer& w) { w.SetIn(file, pointer, json); },
          .phase = Phase::kOpen,
          .code = code,
          .file = file,
          .pointer = pointer};
}
Fault Set(std::string name, Code code, std::string pointer, std::string json) {
  return SetIn(std::move(name), code, "config.json", std::move(pointer), std::move(json));
}
Fault Erase(std::string name, std::string pointer) {
  Fault fault = Set(std::move(name), Code::kMalformed, pointer, "0");
  fault.plant = [=](Writer& w) { w.Erase(pointer); };
  return fault;
}
// The same fault, reported at another pointer.
Fault At(std::string pointer, Fault fault) {
  fault.pointer = std::move(pointer);
  return fault;
}
Fault With(SyntheticModel model, Fault fault) {
  fault.model = std::move(model);
  return fault;
}

const std::string kText = "/text_config/";
const std::string kRope = "/text_config/rope_parameters/";

std::vector<Fault> FamilyFaults() {
  constexpr Code kUnsupported = Code::kUnsupported;
  return {
      Set("ExpertsByModelType", kUnsupported, "/model_type", "\"qwen3_5_moe\""),
      Set("ExpertsByTextModelType", kUnsupported, kText + "model_type", "\"qwen3_5_moe_text\""),
      Set("ExpertsByArchitecture", kUnsupported, "/architectures/0",
          "\"Qwen3_5MoeForConditionalGeneration\""),
      Set("ExpertsByCount", kUnsupported, kText + "num_experts", "64"),
      Set("AnotherFamily", kUnsupported, "/model_type", "\"llama\""),
      Set("AnEarlierFamily", kUnsupported, kText + "model_type", "\"qwen3_next\""),
      Set("AnotherTask", kUnsupported, "/architectures/0", "\"Qwen3_5ForSequenceClassification\""),
      Set("ArchitecturesAsText", Code::kMalformed, "/architectures", "\"Qwen3_5ForCausalLM\""),
      Set("ModelTypeAsNumber", Code::kMalformed, "/model_type", "5"),
      At("/model_type", {.name = "NoFamilyAtAll",
                         .plant =
                             [](Writer& w) {
                               w.Erase("/model_type");
                               w.Erase("/architectures");
                             },
                         .phase = Phase::kOpen,
                         .file = "config.json"}),
      Set("TextConfigAsList", Code::kMalformed, "/text_config", "[]"),
      Set("AnotherActivation", kUnsupported, kText + "hidden_act", "\"gelu\""),
      Set("ProjectionsWithBias", kUnsupported, kText + "attention_bias", "true"),
      Set("AttentionWithoutGate", kUnsupported, kText + "attn_output_gate", "false"),
      Set("AnotherOutputGate", kUnsupported, kText + "output_gate_type", "\"sigmoid\""),
  };
}

std::vector<Fault> GeometryFaults() {
  constexpr Code kMalformed = Code::kMalformed;
  constexpr Code kOutOfRange = Code::kOutOfRange;
  constexpr Code kMismatch = Code::kMismatch;
  constexpr Code kUnsupported = Code::kUnsupported;
  std::vector<Fault> faults = {
      Set("HiddenAsFloat", kMalformed, kText + "hidden_size", "128.0"),
      Set("HiddenAsBoolean", kMalformed, kText + "hidden_size", "true"),
      Set("HiddenAsText", kMalformed, kText + "hidden_size", "\"128\""),
      Set("HiddenOfZero", kOutOfRange, kText + "hidden_size", "0"),
      Set("HiddenNegative", kOutOfRange, kText + "hidden_size", "-128"),
      Set("HiddenBeyond64Bits", kMalformed, kText + "hidden_size", "99999999999999999999"),
      Set("LayersWithoutBound", kOutOfRange, kText + "num_hidden_layers", "1000000000000"),
      Set("VocabularyWithoutBound", kOutOfRange, kText + "vocab_size", "4294967296"),
      Set("LayerTypesOfAnotherLength", kMismatch, kText + "layer_types", "[\"full_attention\"]"),
      Set("LayerTypeUnknown", kUnsupported, kText + "layer_types/2", "\"sliding_attention\""),
      Set("LayerTypeAsNumber", kMalformed, kText + "layer_types/2", "3"),
      Set("LayerTypesAsText", kMalformed, kText + "layer_types", "\"full_attention\""),
      Set("IntervalOfZero", kOutOfRange, kText + "full_attention_interval", "0"),
      Set("QueryHeadsNotAMultiple", kMismatch, kText + "num_attention_heads", "3"),
      Set("ValueHeadsNotAMultiple", kMismatch, kText + "linear_num_value_heads", "3"),
      Set("HeadDimNotAMultipleOf128", kUnsupported, kText + "head_dim", "192"),
      Set("KeyDimOf64", kUnsupported, kText + "linear_key_head_dim", "64"),
      Set("ValueDimOf256", kUnsupported, kText + "linear_value_head_dim", "256"),
      Set("ConvolutionOfThree", kUnsupported, kText + "linear_conv_kernel_dim", "3"),
      Set("EpsOfZero", kOutOfRange, kText + "rms_norm_eps", "0"),
      Set("EpsNegative", kOutOfRange, kText + "rms_norm_eps", "-1e-6"),
      Set("EpsAsText", kMalformed, kText + "rms_norm_eps", "\"1e-6\""),
      Set("PositionsOfZero", kOutOfRange, kText + "max_position_embeddings", "0"),
      Set("TieAsText", kMalformed, "/tie_word_embeddings", "\"false\""),
      Set("TieAsNumber", kMalformed, kText + "tie_word_embeddings", "0"),
      Set("RootStatesAnotherHidden", kMismatch, "/hidden_size", "256"),
      Set("RootStatesAnotherTheta", kMismatch, "/rope_theta", "10000"),
  };
  // Two heads a kv head in the control, so that three are not a multiple; mrope fits 128.
  faults[13].model = {.heads = 4, .kv_heads = 2};
  faults[14].model = {.key_heads = 2, .value_heads = 4};
  faults[15].plant = [](Writer& w) {
    w.Set(kText + "head_dim", "192");
    w.Set(kRope + "mrope_section", "[22,1,1]");
  };
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "num_key_value_heads", "vocab_size"}) {
    faults.push_back(Erase(std::string("No_") + key, kText + key));
  }
  return faults;
}

std::vector<Fault> RopeFaults() {
  constexpr Code kOutOfRange = Code::kOutOfRange;
  const std::string factor = kRope + "partial_rotary_factor";
  return {
      Set("RotaryFactorOfZero", kOutOfRange, factor, "0.0"),
      Set("RotaryFactorNegative", kOutOfRange, factor, "-0.25"),
      Set("RotaryFactorAboveOne", kOutOfRange, factor, "1.5"),
      Set("RotaryFactorWithoutBound", kOutOfRange, factor, "1e300"),
      // 128 x 0.258 = 33.02.
      Set("RotaryWidthOdd", kOutOfRange, factor, "0.258"),
      // 10 x 0.3: a width of 3, refused before the head's size is.
      {.name = "RotaryWidthOfThreeOnATinyHead",
       .plant =
           [=](Writer& w) {
             w.Set(kText + "head_dim", "10");
             w.Set(factor, "0.3");
           },
       .phase = Phase::kOpen,
       .code = kOutOfRange,
       .file = "config.json",
       .pointer = factor},
      Set("RotaryFactorAsText", Code::kMalformed, factor, "\"0.25\""),
      Set("SectionOfAnotherSum", Code::kMismatch, kRope + "mrope_section", "[11,11,10]"),
      Set("SectionNegative", kOutOfRange, kRope + "mrope_section/1", "-1"),
      Set("ThetaOfZero", kOutOfRange, kRope + "rope_theta", "0"),
      Set("ThetaBelowOne", kOutOfRange, kRope + "rope_theta", "1e-30"),
      Set("ThetaNegative", kOutOfRange, kRope + "rope_theta", "-10000"),
      Set("ThetaAsText", Code::kMalformed, kRope + "rope_theta", "\"10000\""),
      Set("RopeScaled", Code::kUnsupported, kRope + "rope_type", "\"yarn\""),
      Set("RopeScaledInTheOldKey", Code::kUnsupported, kText + "rope_scaling/type", "\"linear\""),
      Set("RopeByLayerKind", Code::kUnsupported, kRope + "full_attention", "{}"),
      // Stated at text level too, with another value: found at the second place.
      At(kRope + "rope_theta",
         Set("ThetaStatedTwice", Code::kMismatch, kText + "rope_theta", "10000")),
      At(factor,
         Set("RotaryFactorStatedTwice", Code::kMismatch, kText + "partial_rotary_factor", "0.5")),
  };
}

std::vector<Fault> DocumentFaults() {
  const std::string kGeneration = "generation_config.json";
  const std::string kStorage = "quantization_config.json";
  const std::string block = "/quantization_config/";
  const auto text = [](std::string name, std::string file, std::string body, std::string pointer,
                       Code code = Code::kMalformed) -> Fault {
    return {.name = std::move(name),
            .plant = [=](Writer& w) { w.SetDocument(file, body); },
            .phase = Phase::kOpen,
            .code = code,
            .file = file,
            .pointer = std::move(pointer)};
  };
  std::vector<Fault> faults = {
      text("ConfigBroken", "config.json", "{\"model_type\":", ""),
      text("ConfigAsList", "config.json", "[]", ""),
      text("ConfigWithAKeyTwice", "config.json", R"({"hidden_size":1,"hidden_size":2})",
           "/hidden_size"),
      text("ConfigTooDeep", "config.json", std::string(100000, '['), FirstItems(64)),
      text("GenerationBroken", kGeneration, "{", ""),
      text("StopIdAsText", kGeneration, R"({"eos_token_id":"7"})", "/eos_token_id"),
      text("StopIdAsFloat", kGeneration, R"({"eos_token_id":[7.0]})", "/eos_token_id/0"),
      text("StopIdBeyondTheVocabulary", kGeneration, R"({"eos_token_id":[7,300]})",
           "/eos_token_id/1", Code::kOutOfRange),
      Set("StopIdNegative", Code::kOutOfRange, "/eos_token_id", "-1"),
      Set("StopIdAsBoolean", Code::kMalformed, kText + "eos_token_id", "true"),
      Set("StartIdBeyondTheVocabulary", Code::kOutOfRange, kText + "bos_token_id", "300"),
      Set("AnotherQuantization", Code::kUnsupported, block + "quant_method", "\"gptq\""),
      Set("AverageBitsAboveEight", Code::kOutOfRange, block + "bits", "8.5"),
      Set("AverageBitsBelowOne", Code::kOutOfRange, block + "bits", "0.99"),
      Set("AverageBitsAsText", Code::kMalformed, block + "bits", "\"3.5\""),
      Set("HeadBitsOfNine", Code::kOutOfRange, block + "head_bits", "9"),
      Set("HeadBitsOfTwoAndAHalf", Code::kMalformed, block + "head_bits", "2.5"),
      Set("PredictionBitsOfZero", Code::kOutOfRange, block + "mtp_bits", "0"),
      Set("CodebookUnknown", Code::kUnsupported, block + "codebook", "\"mul2\""),
      Erase("NoQuantMethod", block + "quant_method"),
      text("StorageFileStatesOtherBits", kStorage,
           R"({"quant_method":"exl3","bits":4.0,"head_bits":3,"codebook":"mul1"})", "/bits",
           Code::kMismatch),
      text("StorageFileOfAnotherMethod", kStorage, R"({"quant_method":"awq"})", "/quant_method",
           Code::kUnsupported),
  };
  return faults;
}

// Faults of tensor_storage, whose control has a quantization_config.json that agrees.
std::vector<Fault> StorageFaults() {
  const std::string module = "model.language_model.layers.0.mlp.down_proj";
  const std::string at = "/tensor_storage/" + module;
  const std::string stored = at + "/stored_tensors/" + module;
  const auto fault = [&](std::string name, Code code, std::string pointer, std::string json,
                         std::string suffix, std::string place = "") {
    Fault out = SetIn(std::move(name), code, "quantization_config.json", pointer, json);
    out.plant = [=](Writer& w) {
      w.AddStorage();
      w.SetIn("quantization_config.json", pointer, json);
    };
    out.pointer = place.empty() ? pointer : place;
    if (!suffix.empty()) out.tensor = module + suffix;
    return out;
  };
  constexpr Code kMismatch = Code::kMismatch;
  return {
      With({.k2 = 5},
           fault("HalfWidthStatedAsTwo", kMismatch, at + "/bits_per_weight", "2", ".trellis")),
      fault("WidthStatedAsFour", kMismatch, at + "/bits_per_weight", "4", ".trellis"),
      fault("WidthStatedAsNine", Code::kOutOfRange, at + "/bits_per_weight", "9", ""),
      fault("ShapeOfAnotherTensor", kMismatch, stored + ".suh/shape", "[128]", ".suh",
            stored + ".suh"),
      fault("DtypeOfAnotherTensor", kMismatch, stored + ".suh/dtype", "\"torch.bfloat16\"", ".suh",
            stored + ".suh"),
      fault("DtypeUnknown", Code::kUnsupported, stored + ".suh/dtype", "\"torch.int3\"", ""),
      fault("BytesOfAnotherTensor", kMismatch, stored + ".suh/n_bytes", "513", ".suh",
            stored + ".suh"),
      fault("TensorThatNoShardHolds", kMismatch, stored + ".bias",
            R"({"shape":[128],"dtype":"torch.float16"})", ".bias"),
      fault("MultiplierOfAnotherCodebook", Code::kUnsupported, at + "/mul1_multiplier",
            "2212286767", ".mul1"),
      fault("MultiplierWithoutItsMarker", kMismatch, at + "/mcg_multiplier", "3417055213", ".mcg"),
      fault("FormatOfAModuleUnknown", Code::kUnsupported, at + "/quant_format", "\"exl2\"", ""),
  };
}

class FormatRejectConfig : public testing::TestWithParam<Fault> {};

TEST_P(FormatRejectConfig, RefusesAfterItsControl) { ExpectRefused(GetParam()); }

std::string NameOf(const testing::TestParamInfo<Fault>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Family, FormatRejectConfig, testing::ValuesIn(FamilyFaults()), NameOf);
INSTANTIATE_TEST_SUITE_P(Geometry, FormatRejectConfig, testing::ValuesIn(GeometryFaults()), NameOf);
INSTANTIATE_TEST_SUITE_P(Rope, FormatRejectConfig, testing::ValuesIn(RopeFaults()), NameOf);
INSTANTIATE_TEST_SUITE_P(Document, FormatRejectConfig, testing::ValuesIn(DocumentFaults()), NameOf);
INSTANTIATE_TEST_SUITE_P(Storage, FormatRejectConfig, testing::ValuesIn(StorageFaults()), NameOf);

}  // namespace
}  // namespace hallmark
