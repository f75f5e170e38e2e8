// SPDX-License-Identifier: Apache-2.0
// DrafterCheckpoint and DrafterInventory: a drafter's folder, opened, and its tensors sorted into
// their roles with shapes and types held against the config. Clauses: format-accept, format-reject.
// Reads headers and codebook markers, no other data: values are CheckFiniteDrafter's task. A
// drafter has no embedding and no head: it uses its target's.
#ifndef HALLMARK_ENGINE_FORMAT_DRAFTER_INVENTORY_H_
#define HALLMARK_ENGINE_FORMAT_DRAFTER_INVENTORY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/format/checkpoint_folder.h"
#include "engine/format/drafter_config.h"
#include "engine/format/linear.h"
#include "engine/format/tensor.h"
#include "engine/format/tensor_sorter.h"

namespace hallmark {

class DrafterCheckpoint {
 public:
  static Result<DrafterCheckpoint> Open(const std::string& folder);

  const std::string& folder() const { return folder_.path(); }
  const DrafterConfig& config() const { return config_; }
  const std::optional<QuantizationConfig>& quantization() const { return quantization_; }
  // As CheckpointFolder's.
  Status Intact() const { return folder_.Intact(); }
  // Sorted by name. Views live as long as the checkpoint.
  std::span<const TensorView> tensors() const { return folder_.tensors(); }
  std::span<const CheckpointFile> shards() const { return folder_.shards(); }
  std::span<const CheckpointFile> files() const { return folder_.files(); }

 private:
  explicit DrafterCheckpoint(CheckpointFolder folder) : folder_(std::move(folder)) {}

  CheckpointFolder folder_;
  DrafterConfig config_;
  std::optional<QuantizationConfig> quantization_;
};

// Plain tensors are BF16, F16 or F32 each; linears may be EXL3 or 4-bit affine too. h = hidden.
struct DrafterConvTensors {
  TensorView base;          // [2 sides, kernel, h]; side 0 before the mixer or MLP, 1 after it
  LinearSource projection;  // h -> 2 * kernel * (h / group), [side][tap][group]
};

struct DrafterLayerTensors {
  TensorView input_norm;                             // [h], a plain factor, as all norms here
  TensorView post_norm;                              // [h]
  LinearSource q, k, v;                              // h -> heads or kv_heads * head_dim
  LinearSource o;                                    // heads * head_dim -> h
  TensorView q_norm, k_norm;                         // [head_dim]
  LinearSource gate, up;                             // h -> intermediate
  LinearSource down;                                 // intermediate -> h
  std::optional<DrafterConvTensors> attention_conv;  // both, or none
  std::optional<DrafterConvTensors> mlp_conv;        //
};

struct DrafterSelectorTensors {
  TensorView predecessor;   // [vocab, rank]
  TensorView successor;     // [vocab, rank]
  LinearSource projection;  // h -> rank
};

struct DrafterInventory {
  LinearSource fc;         // taps * h -> h
  TensorView hidden_norm;  // [h], after fc
  TensorView norm;         // [h], of the block's output rows
  std::vector<DrafterLayerTensors> layers;
  std::optional<DrafterSelectorTensors> selector;

  int64_t used_tensors = 0;
  uint64_t used_bytes = 0;
};

// kNotFound lists every missing tensor, kUnsupported every unknown one when none is missing;
// kMismatch is a shape, a type, two forms of one thing, or EXL3 tensors without a
// quantization_config.
Result<DrafterInventory> TakeDrafterInventory(const DrafterCheckpoint& checkpoint);

// What an inventory is taken of, when there is no checkpoint that opened whole.
struct DrafterSource {
  const DrafterConfig& config;
  const std::optional<QuantizationConfig>& quantization;
  std::span<const TensorView> tensors;  // sorted by name, each name once
  const std::string& folder;            // names the source in errors
};
// The same. With `all`, every fault is noted there and what is at fault is left empty in the
// inventory, which nobody may then bind.
Result<DrafterInventory> TakeDrafterInventory(const DrafterSource& source, TensorFaults* all);

// Whether a drafter's config states MLX's 4-bit layout: as "quantization", and often again as
// "quantization_config", a key that is EXL3's otherwise. kMismatch when the two differ.
Result<bool> StatesAffine(const Json& config, const std::string& file);

// Every linear in binding order: fc, the layers, the selector's.
std::vector<const LinearSource*> Linears(const DrafterInventory& inventory);

// Refuses an infinity or NaN (kOutOfRange: tensor, count, first index) in any norm, base kernel,
// codebook, scale, bias or plain matrix. Reads them whole.
Status CheckFiniteDrafter(const DrafterInventory& inventory);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_DRAFTER_INVENTORY_H_
