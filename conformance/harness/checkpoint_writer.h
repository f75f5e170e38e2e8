// SPDX-License-Identifier: Apache-2.0
// CheckpointWriter: builds a valid dense qwen3_5 checkpoint from a few numbers, lets a test change
// one thing, and writes the folder. Weights are random and mean nothing. Every change is by name;
// naming what is not there aborts, so that a test cannot pass by changing nothing.
#ifndef HALLMARK_CONFORMANCE_HARNESS_CHECKPOINT_WRITER_H_
#define HALLMARK_CONFORMANCE_HARNESS_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/harness/safetensors_writer.h"
#include "engine/base/result.h"
#include "engine/format/linear.h"

namespace hallmark {

// The defaults are a valid model of 4 layers, one of them full attention.
struct SyntheticModel {
  int64_t hidden = 128;
  int64_t intermediate = 200;  // stored as 256
  int64_t vocab = 300;         // a quantized head stores 384
  int layers = 4;
  int interval = 4;
  int heads = 2;
  int kv_heads = 1;
  int head_dim = 128;
  int key_heads = 1;
  int value_heads = 2;

  bool quantized = true;
  int k2 = 6;  // twice the bits a weight
  Codebook codebook = Codebook::kMul1;
  bool packed_signs = false;
  bool quantized_head = true;  // only if `quantized`
  bool tied = false;           // no head at all
  DType plain = DType::kBF16;  // of plain matrices
  DType vectors = DType::kBF16;
  DType delta = DType::kF32;  // of A_log and the gated norm

  bool nested = true;  // text_config, or text keys at the root
  std::string prefix = "model.language_model.";
  std::string head = "lm_head";
  bool layer_types = true;  // or the interval alone
  bool mtp = false;
  bool visual = false;
  bool data = true;  // false: headers only, data is holes but for the codebook markers
  uint64_t seed = 1;
};

class CheckpointWriter {
 public:
  explicit CheckpointWriter(const SyntheticModel& model = {});

  // JSON text of a document; "" when there is none. Starts with config.json alone.
  const std::string& Document(const std::string& file) const;
  void SetDocument(const std::string& file, std::string text) { documents_[file] = text; }
  // Sets or erases one value in a document (config.json) by JSON pointer. `json` is JSON text.
  void Set(const std::string& pointer, const std::string& json) {
    SetIn("config.json", pointer, json);
  }
  void Erase(const std::string& pointer) { EraseIn("config.json", pointer); }
  void SetIn(const std::string& file, const std::string& pointer, const std::string& json);
  void EraseIn(const std::string& file, const std::string& pointer);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  TensorSpec& Tensor(std::string_view name);
  void Add(TensorSpec tensor) { tensors_.push_back(std::move(tensor)); }
  void Remove(std::string_view name);
  // All whose names begin with `prefix`.
  void RemovePrefix(std::string_view prefix);
  void Rename(std::string_view from, const std::string& to);
  // Full name of a text tensor, e.g. "layers.0.mlp.down_proj.trellis".
  std::string Name(std::string_view rest) const { return model_.prefix + std::string(rest); }
  const SyntheticModel& model() const { return model_; }

  // Cuts the tensors into `count` shards, in order, and makes the index a document.
  void Shard(int count);
  // Places a tensor in a shard (0-based) without touching the index.
  void PutInShard(int shard, TensorSpec tensor);
  std::string ShardFile(int shard) const;
  std::vector<TensorSpec>& ShardTensors(int shard);

  // Adds quantization_config.json with the storage of every quantized module.
  void AddStorage();

  // Writes the folder anew: what was in it is removed.
  Status Write(const std::string& folder, const SafetensorsStyle& style = {}) const;

 private:
  SyntheticModel model_;
  std::map<std::string, std::string> documents_;
  std::vector<TensorSpec> tensors_;              // while not sharded
  std::vector<std::vector<TensorSpec>> shards_;  // once sharded
};

// The public 27B geometry, headers only, mul1 at 3.5 bits, 6-bit head, two shards.
CheckpointWriter HeaderOnly27B();

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_CHECKPOINT_WRITER_H_
