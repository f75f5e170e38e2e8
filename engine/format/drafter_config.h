// SPDX-License-Identifier: Apache-2.0
// DrafterConfig: every number of a DFlash or DFlash2 drafter, from its config.json and never from a
// name. Clauses: format-accept, format-reject. Each key is looked for at the top level and in
// dflash_config, those of the rotation in rope_parameters and rope_scaling too; one fact stated
// twice with two values is kMismatch. What this engine's arithmetic lacks is kUnsupported by name.
//
// Required: hidden_size, intermediate_size, num_hidden_layers, num_attention_heads,
// num_key_value_heads, vocab_size, rope_theta (other engines' silent defaults differ), block_size,
// mask_token_id, target_layer_ids.
#ifndef HALLMARK_ENGINE_FORMAT_DRAFTER_CONFIG_H_
#define HALLMARK_ENGINE_FORMAT_DRAFTER_CONFIG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/result.h"
#include "engine/format/model_config.h"

namespace hallmark {

struct DrafterLayerKind {
  // A key is seen iff query - key < window (and key - query < window): window - 1 rows of context
  // for a block's first row. Absent: full attention.
  std::optional<int64_t> window;
  bool causal = false;  // inside the block; the context always lies before it
};

// The dynamic convolution of DFlash2.
struct DrafterConv {
  int64_t kernel = 0;  // taps
  int64_t group = 0;   // channels that share a coefficient; divides hidden
};

// The path selector of DFlash2.
struct DrafterSelector {
  int64_t rank = 0;
  int64_t top_k = 0;  // at most vocab
};

struct DrafterConfig {
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t vocab = 0;
  float eps = 0.0f;
  int heads = 0;  // a multiple of kv_heads
  int kv_heads = 0;
  int head_dim = 0;  // even; the rotation is over its full width
  double rope_theta = 0.0;

  std::vector<DrafterLayerKind> layers;
  int64_t block_size = 0;        // rows: the anchor and the masks; 2 .. kMaxBlock
  int32_t mask_token = 0;        // below vocab
  std::vector<int64_t> targets;  // ids of the target's layers whose outputs are read, as listed:
                                 // column block j of fc belongs to targets[j]
  std::optional<int64_t> target_layers;  // of the target it was made for
  float input_scale = 1.0f;              // of the embedding rows
  float output_multiplier = 1.0f;        // of the logits
  std::optional<float> softcap;          // cap * tanh(logit / cap), after the multiplier

  std::optional<DrafterConv> conv;          // both in DFlash2, none in DFlash
  std::optional<DrafterSelector> selector;  //

  std::string file;                                    // config.json
  std::map<std::string, std::string, std::less<>> at;  // key to the JSON pointer it was found at

  static constexpr int64_t kMaxBlock = 128;

  int64_t query_width() const { return int64_t{heads} * head_dim; }
  int64_t kv_width() const { return int64_t{kv_heads} * head_dim; }
  int64_t tap_width() const { return hidden * static_cast<int64_t>(targets.size()); }
  // The widest window of any layer; nullopt when a layer sees all of the context.
  std::optional<int64_t> widest_window() const;
  Locator At(std::string_view key) const;
};

// A config read part by part, for those who want every fault and not the first alone.
struct DrafterConfigReading {
  DrafterConfig config;       // whole only without faults
  std::vector<Error> faults;  // in the order of the reading; none follows from another
};
DrafterConfigReading ReadDrafterConfig(const Json& root, const std::string& file);

// The config, or the first of its faults. `file` names the source in errors.
Result<DrafterConfig> ParseDrafterConfig(std::string_view text, const std::string& file);
Result<DrafterConfig> DrafterConfigFromJson(const Json& root, const std::string& file);

// What keeps this drafter from drafting for that target: hidden sizes, vocabularies or layer counts
// that differ, a layer id whose output the target does not have before its last layer, a mask id
// outside the vocabulary. Each a kMismatch of its own that names both values and the drafter's key;
// empty when they fit.
std::vector<Error> DrafterMismatches(const DrafterConfig& drafter, const ModelConfig& target);
// The first of them.
Status CheckDrafterFits(const DrafterConfig& drafter, const ModelConfig& target);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_DRAFTER_CONFIG_H_
