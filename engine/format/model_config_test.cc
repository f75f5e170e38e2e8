// SPDX-License-Identifier: Apache-2.0
#include "engine/format/model_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hallmark {
namespace {

// The published 27B geometry with the keys of its config, nested.
Json Published() {
  return Json::parse(R"({
    "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
    "image_token_id": 248056, "tie_word_embeddings": false, "hidden_size": 5120,
    "eos_token_id": 248046, "vision_config": {"model_type": "qwen3_5", "hidden_size": 1152},
    "text_config": {
      "model_type": "qwen3_5_text", "hidden_size": 5120, "intermediate_size": 17408,
      "num_hidden_layers": 64, "num_attention_heads": 24, "num_key_value_heads": 4,
      "head_dim": 256, "vocab_size": 248320, "linear_num_key_heads": 16,
      "linear_num_value_heads": 48, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
      "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "rms_norm_eps": 1e-6,
      "hidden_act": "silu", "attention_bias": false, "attn_output_gate": true,
      "output_gate_type": "swish", "max_position_embeddings": 262144, "eos_token_id": 248044,
      "bos_token_id": null, "mtp_num_hidden_layers": 1, "mlp_only_layers": [],
      "partial_rotary_factor": 0.25,
      "rope_parameters": {"rope_type": "default", "rope_theta": 10000000,
        "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10], "mrope_interleaved": true}}
  })");
}

Result<ModelConfig> Parse(const Json& root) { return ModelConfigFromJson(root, "config.json"); }

TEST(ModelConfig, ReadsThePublishedGeometry) {
  const auto config = Parse(Published());
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  EXPECT_EQ(config->hidden, 5120);
  EXPECT_EQ(config->intermediate, 17408);
  EXPECT_EQ(config->vocab, 248320);
  EXPECT_EQ(config->max_positions, 262144);
  EXPECT_EQ(config->eps, 1e-6f);
  ASSERT_EQ(config->layers.size(), 64u);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(config->layers[i], i % 4 == 3 ? LayerKind::kAttention : LayerKind::kDeltaNet);
  }
  EXPECT_EQ(config->query_width(), 6144);
  EXPECT_EQ(config->kv_width(), 1024);
  EXPECT_EQ(config->rotary_dim, 64);
  EXPECT_EQ(config->rope_theta, 1e7);
  EXPECT_EQ(config->conv_channels(), 10240);
  EXPECT_EQ(config->linear_value_width(), 6144);
  EXPECT_EQ(config->tie.root, false);
  EXPECT_FALSE(config->tie.text.has_value());
  EXPECT_FALSE(config->bos.has_value());
  EXPECT_EQ(config->eos, (std::vector<int64_t>{248044, 248046}));
}

TEST(ModelConfig, ReadsAFlatConfig) {
  Json flat = Published()["text_config"];
  flat["architectures"] = {"Qwen3_5ForCausalLM"};
  flat["bos_token_id"] = 248044;
  flat["tie_word_embeddings"] = true;
  const auto config = Parse(flat);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->hidden, 5120);
  EXPECT_EQ(config->bos, 248044);
  EXPECT_EQ(config->tie.root, true);
}

TEST(ModelConfig, TakesTheReferencesDefaults) {
  const auto config = ParseModelConfig(R"({"model_type": "qwen3_5_text", "hidden_size": 64,
    "intermediate_size": 64, "num_hidden_layers": 5, "num_attention_heads": 2,
    "num_key_value_heads": 1, "vocab_size": 10})",
                                       "config.json");
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  EXPECT_EQ(config->rope_theta, 10000.0);
  EXPECT_EQ(config->head_dim, 256);
  EXPECT_EQ(config->rotary_dim, 64);
  EXPECT_EQ(config->eps, 1e-6f);
  EXPECT_EQ(config->max_positions, 32768);
  EXPECT_EQ(config->linear_key_heads, 16);
  EXPECT_EQ(config->linear_value_heads, 32);
  EXPECT_EQ(config->conv_kernel, 4);
  EXPECT_EQ(config->layers[3], LayerKind::kAttention);
  EXPECT_EQ(config->layers[4], LayerKind::kDeltaNet);
  EXPECT_TRUE(config->eos.empty());
}

TEST(ModelConfig, TruncatesTheRotaryWidthAsTheReferenceDoes) {
  Json root = Published();
  Json& text = root["text_config"];
  text.erase("partial_rotary_factor");
  text["rope_parameters"].erase("mrope_section");
  // 256 x 0.2579 = 66.02
  text["rope_parameters"]["partial_rotary_factor"] = 0.2579;
  EXPECT_EQ(Parse(root)->rotary_dim, 66);
  // 256 x 0.255 = 65.28
  text["rope_parameters"]["partial_rotary_factor"] = 0.255;
  EXPECT_EQ(Parse(root).error().code, Code::kOutOfRange);
}

TEST(ModelConfig, RefusesByNameAndPointer) {
  struct Case {
    const char* pointer;
    Json value;
    Code code;
  };
  const Case cases[] = {
      {"/model_type", "qwen3_5_moe", Code::kUnsupported},
      {"/text_config/hidden_act", "gelu", Code::kUnsupported},
      {"/text_config/num_key_value_heads", 0, Code::kOutOfRange},
      {"/text_config/rope_parameters/rope_theta", "1e7", Code::kMalformed},
      {"/hidden_size", 4096, Code::kMismatch},
      {"/vocab_size", nullptr, Code::kInternal},  // null is absent: accepted
  };
  for (const Case& c : cases) {
    Json root = Published();
    root[Json::json_pointer(c.pointer)] = c.value;
    const auto config = Parse(root);
    if (c.value.is_null()) {
      EXPECT_TRUE(config.has_value());
      continue;
    }
    ASSERT_FALSE(config.has_value()) << c.pointer;
    EXPECT_EQ(config.error().code, c.code) << c.pointer;
    EXPECT_EQ(config.error().where.pointer, c.pointer);
    EXPECT_EQ(config.error().where.file, "config.json");
  }
}

TEST(ModelConfig, RefusesATextKeyThatOnlyTheRootStates) {
  Json root = Published();
  root["layer_types"] = Json::array();
  const auto config = Parse(root);
  ASSERT_FALSE(config.has_value());
  EXPECT_EQ(config.error().where.pointer, "/layer_types");
}

std::vector<std::string> PointersOf(const std::vector<Error>& faults) {
  std::vector<std::string> pointers;
  for (const Error& fault : faults) pointers.push_back(fault.where.pointer);
  return pointers;
}

TEST(ModelConfig, GoesOnAfterAFaultAndLeavesOutWhatFollowsFromIt) {
  Json root = Published();
  Json& text = root["text_config"];
  text["hidden_act"] = "gelu";
  text["attention_bias"] = 1;
  text["head_dim"] = "256";  // the rotary width rests on it
  text["rope_parameters"]["rope_theta"] = 0;
  text["num_key_value_heads"] = 0;  // so does the ratio of heads on this
  text["rms_norm_eps"] = -1;
  const ModelConfigReading reading = ReadModelConfig(root, "config.json");
  EXPECT_EQ(
      PointersOf(reading.faults),
      (std::vector<std::string>{"/text_config/hidden_act", "/text_config/attention_bias",
                                "/text_config/rms_norm_eps", "/text_config/num_key_value_heads",
                                "/text_config/head_dim"}));
  EXPECT_FALSE(reading.sizes);
  EXPECT_EQ(Parse(root).error().where.pointer, "/text_config/hidden_act");
}

TEST(ModelConfig, SaysThatSizesAreKnownInSpiteOfOtherFaults) {
  Json root = Published();
  root["text_config"]["rope_parameters"]["rope_theta"] = 0;
  const ModelConfigReading reading = ReadModelConfig(root, "config.json");
  EXPECT_EQ(reading.faults.size(), 1u);
  EXPECT_TRUE(reading.sizes);
  EXPECT_EQ(reading.config.hidden, 5120);
}

}  // namespace
}  // namespace hallmark
