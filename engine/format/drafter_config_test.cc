// SPDX-License-Identifier: Apache-2.0
#include "engine/format/drafter_config.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/harness/drafter_writer.h"
#include "conformance/harness/paths.h"
#include "engine/format/drafter_inventory.h"

namespace hallmark {
namespace {

Result<DrafterConfig> Parse(const std::function<void(DrafterWriter&)>& change,
                            const SyntheticDrafter& drafter = {}) {
  DrafterWriter writer(drafter);
  if (change) change(writer);
  return ParseDrafterConfig(writer.config(), "config.json");
}
Result<DrafterConfig> With(const std::string& pointer, const std::string& json,
                           const SyntheticDrafter& drafter = {}) {
  return Parse([&](DrafterWriter& w) { w.Set(pointer, json); }, drafter);
}

void ExpectRefused(const Result<DrafterConfig>& config, Code code, const std::string& pointer) {
  ASSERT_FALSE(config.has_value()) << pointer;
  EXPECT_EQ(config.error().code, code) << config.error().ToString();
  EXPECT_EQ(config.error().where, (Locator{.file = "config.json", .pointer = pointer}))
      << config.error().ToString();
}

TEST(DrafterConfig, ReadsADFlash2Drafter) {
  const auto checkpoint = DrafterCheckpoint::Open(GoldenPath("models/scribe-11m-dflash2"));
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().ToString();
  const DrafterConfig& config = checkpoint->config();
  EXPECT_EQ(config.hidden, 256);
  EXPECT_EQ(config.block_size, 8);
  EXPECT_EQ(config.mask_token, 4094);
  EXPECT_EQ(config.targets, (std::vector<int64_t>{1, 3, 5}));
  EXPECT_EQ(config.rope_theta, 1e7);
  ASSERT_TRUE(config.conv && config.selector);
  EXPECT_EQ(config.conv->group, 16);
  EXPECT_EQ(config.selector->rank, 64);
  EXPECT_EQ(config.selector->top_k, 16);
  ASSERT_EQ(config.layers.size(), 3u);
  EXPECT_EQ(config.layers[0].window, 128);
  EXPECT_FALSE(config.layers[0].causal);
  EXPECT_EQ(config.widest_window(), 128);
}

TEST(DrafterConfig, ReadsADFlashDrafterByTheDefaultRuleOfCausality) {
  const auto checkpoint = DrafterCheckpoint::Open(GoldenPath("models/prism-dflash"));
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().ToString();
  const DrafterConfig& config = checkpoint->config();
  EXPECT_EQ(config.block_size, 16);
  EXPECT_FALSE(config.conv || config.selector);
  ASSERT_EQ(config.layers.size(), 3u);
  EXPECT_TRUE(config.layers[0].causal);
  EXPECT_EQ(config.layers[0].window, 64);
  EXPECT_FALSE(config.layers[2].causal);
  EXPECT_EQ(config.layers[2].window, std::nullopt);
  EXPECT_EQ(config.widest_window(), std::nullopt);
  EXPECT_EQ(config.rope_theta, 1e7);
}

TEST(DrafterConfig, AKeyMayStandAtEitherPlace) {
  const auto moved = Parse([](DrafterWriter& w) {
    for (const char* key : {"block_size", "mask_token_id", "target_layer_ids", "selector_rank"}) {
      w.Erase(std::string("/dflash_config/") + key);
    }
    w.Set("/block_size", "6");
    w.Set("/mask_token_id", "7");
    w.Set("/target_layer_ids", "[1, 0]");
    w.Set("/selector_rank", "16");
    w.Erase("/hidden_size");
    w.Set("/dflash_config/hidden_size", "128");
    w.Erase("/rope_parameters");
    w.Set("/rope_theta", "50000");
  });
  ASSERT_TRUE(moved.has_value()) << moved.error().ToString();
  EXPECT_EQ(moved->block_size, 6);
  EXPECT_EQ(moved->mask_token, 7);
  EXPECT_EQ(moved->targets, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(moved->rope_theta, 50000.0);
  EXPECT_EQ(moved->At("hidden_size").pointer, "/dflash_config/hidden_size");
  EXPECT_EQ(moved->At("rope_theta").pointer, "/rope_theta");
}

TEST(DrafterConfig, OneValueAtBothPlacesIsFineAndTwoAreNot) {
  EXPECT_TRUE(With("/block_size", "4").has_value());
  ExpectRefused(With("/block_size", "8"), Code::kMismatch, "/dflash_config/block_size");
  EXPECT_TRUE(With("/rope_theta", "10000000.0").has_value());
  ExpectRefused(With("/rope_theta", "10000"), Code::kMismatch, "/rope_parameters/rope_theta");
  ExpectRefused(With("/mask_token_id", "1"), Code::kMismatch, "/dflash_config/mask_token_id");
  ExpectRefused(With("/target_layer_ids", "[0, 2]"), Code::kMismatch,
                "/dflash_config/target_layer_ids");
  ExpectRefused(With("/dflash_config/vocab_size", "301"), Code::kMismatch,
                "/dflash_config/vocab_size");
}

TEST(DrafterConfig, CausalityIsStatedOrFollowsTheLayer) {
  const auto causal_of = [](const std::function<void(DrafterWriter&)>& change) {
    return Parse(change)->layers[0].causal;
  };
  EXPECT_FALSE(causal_of({}));
  EXPECT_TRUE(causal_of([](DrafterWriter& w) { w.Set("/is_causal", "true"); }));
  EXPECT_TRUE(causal_of([](DrafterWriter& w) { w.Erase("/is_causal"); }));  // it slides
  EXPECT_FALSE(causal_of([](DrafterWriter& w) {
    w.Erase("/is_causal");
    w.Set("/dflash_config/causal", "false");
  }));
  ExpectRefused(With("/dflash_config/causal", "true"), Code::kMismatch, "/dflash_config/causal");
}

TEST(DrafterConfig, WindowsFollowTheRuleOfTheirConfigClass) {
  const auto windows = [](const std::function<void(DrafterWriter&)>& change) {
    std::vector<int64_t> all;
    const auto config = Parse(change);
    EXPECT_TRUE(config.has_value()) << config.error().ToString();
    for (const DrafterLayerKind& layer : config->layers) all.push_back(layer.window.value_or(0));
    return all;
  };
  using Windows = std::vector<int64_t>;
  EXPECT_EQ(windows({}), (Windows{8, 8}));
  // Without layer_types, layers slide from max_window_layers on, 28 by default.
  EXPECT_EQ(windows([](DrafterWriter& w) { w.Erase("/layer_types"); }), (Windows{0, 0}));
  EXPECT_EQ(windows([](DrafterWriter& w) {
              w.Erase("/layer_types");
              w.Set("/max_window_layers", "1");
            }),
            (Windows{0, 8}));
  EXPECT_EQ(windows([](DrafterWriter& w) {
              w.Set("/layer_types", R"(["full_attention", "full_attention"])");
              w.Set("/use_sliding_window", "false");
            }),
            (Windows{0, 0}));
  EXPECT_EQ(windows([](DrafterWriter& w) {
              w.Set("/layer_types", R"(["sliding_attention", "full_attention"])");
            }),
            (Windows{8, 0}));
  ExpectRefused(With("/use_sliding_window", "false"), Code::kMismatch, "/layer_types/0");
  ExpectRefused(Parse([](DrafterWriter& w) { w.Erase("/use_sliding_window"); }), Code::kMismatch,
                "/layer_types/0");
  ExpectRefused(Parse([](DrafterWriter& w) { w.Erase("/sliding_window"); }), Code::kMalformed,
                "/sliding_window");
  ExpectRefused(With("/sliding_window", "0"), Code::kOutOfRange, "/sliding_window");
  ExpectRefused(With("/layer_types", R"(["sliding_attention"])"), Code::kMismatch, "/layer_types");
  ExpectRefused(With("/layer_types", R"(["full_attention", "linear_attention"])"),
                Code::kUnsupported, "/layer_types/1");
  ExpectRefused(With("/layer_types", "3"), Code::kMalformed, "/layer_types");
  ExpectRefused(With("/layer_types", "[1, 2]"), Code::kMalformed, "/layer_types/0");
}

TEST(DrafterConfig, OptionalScalesAreRead) {
  const auto config = Parse([](DrafterWriter& w) {
    w.Set("/dflash_config/input_embedding_scale", "2.5");
    w.Set("/dflash_config/output_multiplier", "0.196");
    w.Set("/final_logit_softcapping", "20");
  });
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  EXPECT_EQ(config->input_scale, 2.5f);
  EXPECT_EQ(config->output_multiplier, 0.196f);
  EXPECT_EQ(config->softcap, 20.0f);
  EXPECT_EQ(Parse({})->softcap, std::nullopt);
}

struct Refusal {
  const char* pointer;
  const char* json;
  Code code;
};

TEST(DrafterConfig, AValueThatCannotBeIsRefusedWhereItStands) {
  const std::vector<Refusal> refusals = {
      {"/dflash_config/block_size", "1", Code::kOutOfRange},
      {"/dflash_config/block_size", "129", Code::kOutOfRange},
      {"/dflash_config/block_size", "\"4\"", Code::kMalformed},
      {"/dflash_config/mask_token_id", "300", Code::kOutOfRange},
      {"/dflash_config/mask_token_id", "-1", Code::kOutOfRange},
      {"/dflash_config/selector_top_k", "301", Code::kOutOfRange},
      {"/dflash_config/selector_top_k", "0", Code::kOutOfRange},
      {"/dflash_config/selector_rank", "0", Code::kOutOfRange},
      {"/dflash_config/conv_kernel_size", "0", Code::kOutOfRange},
      {"/dflash_config/conv_group_size", "24", Code::kMismatch},
      {"/dflash_config/output_multiplier", "0", Code::kOutOfRange},
      {"/dflash_config/output_multiplier", "1e300", Code::kOutOfRange},
      {"/dflash_config/final_logit_softcapping", "-1", Code::kOutOfRange},
      {"/dflash_config/input_embedding_scale", "0", Code::kOutOfRange},
      {"/dflash_config/sample_from_anchor", "true", Code::kUnsupported},
      {"/dflash_config", "3", Code::kMalformed},
      {"/attention_bias", "true", Code::kUnsupported},
      {"/hidden_act", "\"gelu\"", Code::kUnsupported},
      {"/model_type", "\"llama\"", Code::kUnsupported},
      {"/architectures/0", "\"DSparkDraftModel\"", Code::kUnsupported},
      {"/architectures/0", "\"DFlashDraftModel\"", Code::kMismatch},
      {"/architectures", "\"DFlash2DraftModel\"", Code::kMalformed},
      {"/draft_vocab_size", "100", Code::kUnsupported},
      {"/num_key_value_heads", "0", Code::kOutOfRange},
      {"/head_dim", "33", Code::kUnsupported},
      {"/rms_norm_eps", "0", Code::kOutOfRange},
      {"/rope_parameters/rope_theta", "0.5", Code::kOutOfRange},
      {"/rope_parameters/rope_type", "\"yarn\"", Code::kUnsupported},
      {"/rope_parameters/partial_rotary_factor", "0.25", Code::kUnsupported},
      {"/hidden_size", "0", Code::kOutOfRange},
      {"/num_hidden_layers", "0", Code::kOutOfRange},
      {"/num_target_layers", "1", Code::kOutOfRange},
      {"/quantization", "{\"bits\": 8, \"group_size\": 64}", Code::kUnsupported},
  };
  for (const Refusal& refusal : refusals) {
    const std::string pointer = refusal.pointer;
    ExpectRefused(With(pointer, refusal.json), refusal.code,
                  pointer == "/quantization" ? "/quantization/bits" : pointer);
  }
  ExpectRefused(With("/num_attention_heads", "3"), Code::kMismatch, "/num_attention_heads");
}

TEST(DrafterConfig, LayerIdsAreWithinTheTargetAndListedOnce) {
  const std::string ids = "/dflash_config/target_layer_ids";
  EXPECT_TRUE(With(ids, "[2, 0, 1]").has_value());
  ExpectRefused(With(ids, "[3]"), Code::kOutOfRange, ids + "/0");  // the last layer of 4
  ExpectRefused(With(ids, "[0, -1]"), Code::kOutOfRange, ids + "/1");
  ExpectRefused(With(ids, "[1, 0, 1]"), Code::kOutOfRange, ids + "/2");
  ExpectRefused(With(ids, "[]"), Code::kOutOfRange, ids);
}

// Any row of the target's embedding can be the mask, the last and those of no id among them; no
// other id stands in for one that is not stated.
TEST(DrafterConfig, TheMaskIsARowOfTheEmbeddingAndIsStated) {
  const std::string mask = "/dflash_config/mask_token_id";
  for (const char* id : {"0", "1", "299"}) {
    const auto config = With(mask, id);
    ASSERT_TRUE(config.has_value()) << id;
    EXPECT_EQ(config->mask_token, std::stoi(id));
  }
  for (const char* id : {"300", "-1", "4294967296"}) {
    ExpectRefused(With(mask, id), Code::kOutOfRange, mask);
  }
  for (const char* value : {"\"299\"", "299.0", "[299]"}) {
    ExpectRefused(With(mask, value), Code::kMalformed, mask);
  }
  ExpectRefused(Parse([&](DrafterWriter& w) {
                  w.Erase(mask);
                  w.Set("/pad_token_id", "0");
                  w.Set("/eos_token_id", "1");
                }),
                Code::kMalformed, "/mask_token_id");
}

TEST(DrafterConfig, ARequiredKeyThatIsMissingIsNamed) {
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size",
                          "num_attention_heads", "num_key_value_heads"}) {
    const std::string pointer = std::string("/") + key;
    ExpectRefused(Parse([&](DrafterWriter& w) { w.Erase(pointer); }), Code::kMalformed, pointer);
  }
  for (const char* key : {"block_size", "mask_token_id", "target_layer_ids"}) {
    ExpectRefused(Parse([&](DrafterWriter& w) { w.Erase(std::string("/dflash_config/") + key); }),
                  Code::kMalformed, std::string("/") + key);
  }
  ExpectRefused(Parse([](DrafterWriter& w) { w.Erase("/rope_parameters/rope_theta"); }),
                Code::kMalformed, "/rope_theta");
  for (const char* key :
       {"conv_group_size", "conv_kernel_size", "selector_rank", "selector_top_k"}) {
    ExpectRefused(Parse([&](DrafterWriter& w) { w.Erase(std::string("/dflash_config/") + key); }),
                  Code::kMalformed, std::string("/") + key);
  }
}

ModelConfig Target() {
  ModelConfig target;
  target.hidden = 128;
  target.vocab = 300;
  target.layers.resize(4);
  return target;
}

TEST(DrafterConfig, FitsItsTargetOrSaysEachThingThatDoesNot) {
  const DrafterConfig config = *Parse({});
  EXPECT_TRUE(DrafterMismatches(config, Target()).empty());
  EXPECT_TRUE(CheckDrafterFits(config, Target()).has_value());
  ModelConfig other = Target();
  other.hidden = 256;
  other.vocab = 200;
  other.layers.resize(3);
  const std::vector<Error> errors = DrafterMismatches(config, other);
  std::vector<std::string> pointers;
  for (const Error& error : errors) {
    EXPECT_EQ(error.code, Code::kMismatch);
    EXPECT_EQ(error.where.file, "config.json");
    pointers.push_back(error.where.pointer);
  }
  EXPECT_EQ(pointers, (std::vector<std::string>{"/hidden_size", "/vocab_size", "/num_target_layers",
                                                "/dflash_config/target_layer_ids/0",
                                                "/dflash_config/mask_token_id"}));
  EXPECT_NE(errors[0].message.find("128"), std::string::npos);
  EXPECT_NE(errors[0].message.find("256"), std::string::npos);
  ASSERT_FALSE(CheckDrafterFits(config, other).has_value());
  EXPECT_EQ(CheckDrafterFits(config, other).error().where.pointer, "/hidden_size");
}

TEST(DrafterConfig, GoesOnAfterAFault) {
  DrafterWriter writer;
  writer.Set("/hidden_act", "\"gelu\"");
  writer.Set("/rope_theta", "0");
  writer.Set("/sliding_window", "-1");
  const auto reading = ReadDrafterConfig(*ParseJson(writer.config(), "c"), "c");
  EXPECT_EQ(reading.faults.size(), 3u);
}

}  // namespace
}  // namespace hallmark
