// SPDX-License-Identifier: Apache-2.0
// ModelConfig: every number of a dense qwen3_5 model, from config.json, nested (text_config) or
// flat. Not the quantization (quantization_config.h), not the stop ids' union
// (generation_config.h). Clauses: format-accept, format-reject. Other families, experts, and
// arithmetic this engine does not have are kUnsupported by name; one fact stated twice with two
// values is kMismatch.
//
// Required: hidden_size, intermediate_size, num_hidden_layers, num_attention_heads,
// num_key_value_heads, vocab_size. Absent keys otherwise take HF transformers' defaults, which for
// rope_theta (10000), partial_rotary_factor (0.25) and head_dim (256) are not other engines'.
#ifndef HALLMARK_ENGINE_FORMAT_MODEL_CONFIG_H_
#define HALLMARK_ENGINE_FORMAT_MODEL_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/result.h"

namespace hallmark {

enum class LayerKind { kDeltaNet, kAttention };

// tie_word_embeddings as stated at each place. The files decide first: see inventory.h.
struct TieFlag {
  std::optional<bool> root;
  std::optional<bool> text;  // of text_config; absent for a flat config
};

struct ModelConfig {
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t vocab = 0;
  int64_t max_positions = 0;
  float eps = 0.0f;  // of every RMS norm

  std::vector<LayerKind> layers;

  // Attention. heads is a multiple of kv_heads; the rotary width is even, 2..head_dim.
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int rotary_dim = 0;
  double rope_theta = 0.0;

  // Gated DeltaNet. value_heads is a multiple of key_heads.
  int linear_key_heads = 0;
  int linear_value_heads = 0;
  int linear_key_dim = 0;
  int linear_value_dim = 0;
  int conv_kernel = 0;

  TieFlag tie;
  std::optional<int64_t> bos;
  std::vector<int64_t> eos;  // of config.json alone, ascending

  // Channels through the convolution: q | k | v.
  int64_t conv_channels() const {
    return 2 * int64_t{linear_key_heads} * linear_key_dim + linear_value_width();
  }
  int64_t linear_value_width() const { return int64_t{linear_value_heads} * linear_value_dim; }
  int64_t query_width() const { return int64_t{heads} * head_dim; }
  int64_t kv_width() const { return int64_t{kv_heads} * head_dim; }
};

// A config read part by part, for those who want every fault and not the first alone.
struct ModelConfigReading {
  ModelConfig config;         // whole only without faults
  std::vector<Error> faults;  // in the order of the reading; none follows from another
  bool sizes = false;         // every number that a tensor's shape rests on is good
};
ModelConfigReading ReadModelConfig(const Json& root, const std::string& file);

// The config, or the first of its faults. `file` names the source in errors.
Result<ModelConfig> ParseModelConfig(std::string_view text, const std::string& file);
Result<ModelConfig> ModelConfigFromJson(const Json& root, const std::string& file);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_MODEL_CONFIG_H_
