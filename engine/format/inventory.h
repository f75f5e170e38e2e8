// SPDX-License-Identifier: Apache-2.0
// CheckpointInventory: every tensor of a checkpoint sorted into its role, with shapes and types
// held against the config. Whoever binds a model reads this and needs no tensor name. Clauses:
// format-accept, format-reject. Reads headers and codebook markers, no other data: the values of
// scales are CheckFiniteScales' task. Stored sizes of an EXL3 linear are the model's, each rounded
// up to a multiple of 128.
#ifndef HALLMARK_ENGINE_FORMAT_INVENTORY_H_
#define HALLMARK_ENGINE_FORMAT_INVENTORY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/result.h"
#include "engine/format/checkpoint.h"
#include "engine/format/linear.h"
#include "engine/format/tensor.h"
#include "engine/format/tensor_sorter.h"

namespace hallmark {

// Plain tensors are BF16, F16 or F32 each. h = hidden, v = vocab, all from ModelConfig.
struct AttentionTensors {
  LinearSource q_gate;  // h -> heads * 2 * head_dim; per head [query | gate]
  LinearSource k;       // h -> kv_heads * head_dim
  LinearSource v;       // h -> kv_heads * head_dim
  LinearSource o;       // heads * head_dim -> h
  TensorView q_norm;    // [head_dim], zero-centred
  TensorView k_norm;    // [head_dim], zero-centred
};

struct DeltaNetTensors {
  LinearSource qkv;    // h -> conv_channels, q | k | v
  LinearSource z;      // h -> linear_value_width
  LinearSource a;      // h -> linear_value_heads
  LinearSource b;      // h -> linear_value_heads
  LinearSource out;    // linear_value_width -> h
  TensorView conv;     // [conv_channels, 1, conv_kernel]
  TensorView a_log;    // [linear_value_heads]
  TensorView dt_bias;  // [linear_value_heads]
  TensorView norm;     // [linear_value_dim], a plain factor (not zero-centred)
};

struct LayerTensors {
  std::variant<DeltaNetTensors, AttentionTensors> mixer;  // in the order of LayerKind
  TensorView input_norm;                                  // [h], zero-centred
  TensorView post_norm;                                   // [h], zero-centred
  LinearSource gate;                                      // h -> intermediate
  LinearSource up;                                        // h -> intermediate
  LinearSource down;                                      // intermediate -> h

  LayerKind kind() const { return static_cast<LayerKind>(mixer.index()); }
};

struct CheckpointInventory {
  std::string prefix;                // of the text model's tensors
  TensorView embedding;              // [v, h]
  TensorView final_norm;             // [h], zero-centred
  std::optional<LinearSource> head;  // h -> v; absent: the embedding is the head
  std::vector<LayerTensors> layers;
  std::vector<UnusedPart> unused;
  std::vector<std::string> notes;  // oddities that change nothing, one sentence each

  int64_t used_tensors = 0;
  uint64_t used_bytes = 0;
};

// kNotFound lists every missing tensor, and every unknown one beside them; kUnsupported lists
// unknown ones when none is missing; kMismatch is a shape, a type, or two forms of one thing. The
// head is lm_head.trellis, else lm_head.weight, else the embedding if the config ties it.
Result<CheckpointInventory> TakeInventory(const Checkpoint& checkpoint);

// What an inventory is taken of, when there is no checkpoint that opened whole.
struct InventorySource {
  const ModelConfig& config;
  const std::optional<QuantizationConfig>& quantization;
  std::span<const TensorView> tensors;  // sorted by name, each name once
  const std::string& folder;            // names the source in errors
};
// The same. With `all`, every fault is noted there and what is at fault is left empty in the
// inventory, which nobody may then bind; the one error left is a model under two prefixes.
Result<CheckpointInventory> TakeInventory(const InventorySource& source, TensorFaults* all);

// Every linear of the model in binding order: layers first, the head last.
std::vector<const LinearSource*> Linears(const CheckpointInventory& inventory);

// Refuses an infinity or NaN (kOutOfRange: tensor, count, first index) in any EXL3 scale or bias,
// norm, convolution, A_log, dt_bias or plain matrix of a layer. Reads all of these: a few MB for
// the largest model whose projections are EXL3.
Status CheckFiniteScales(const CheckpointInventory& inventory);
// The same for the embedding and every plain matrix, the head too; reads them whole.
Status CheckFiniteMatrices(const CheckpointInventory& inventory);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_INVENTORY_H_
