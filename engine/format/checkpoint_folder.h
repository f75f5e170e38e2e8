// SPDX-License-Identifier: Apache-2.0
// CheckpointFolder: a folder's config.json and weights, one model.safetensors or shards under an
// index, opened and held against each other. What checkpoints of models and of drafters share; it
// knows no config key but the quantization's and no tensor name. Clauses: format-accept,
// format-reject. The index is the authority: a tensor or file that it and the folder do not agree
// on is refused, each disagreement with its own message. Data pages are not read.
#ifndef HALLMARK_ENGINE_FORMAT_CHECKPOINT_FOLDER_H_
#define HALLMARK_ENGINE_FORMAT_CHECKPOINT_FOLDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/result.h"
#include "engine/format/quantization_config.h"
#include "engine/format/tensor.h"

namespace hallmark {

struct CheckpointFile {
  std::string name;  // in the folder
  std::string path;
  uint64_t bytes = 0;
};

// The names in a folder that end in .safetensors, sorted; kIo when it cannot be listed.
Result<std::vector<std::string>> WeightFiles(const std::string& folder);
// Those of them that look like a part of this model and that nobody lists (sorted too).
std::vector<std::string> UnlistedShards(const std::vector<std::string>& present,
                                        const std::vector<std::string>& listed);

class CheckpointFolder {
 public:
  // Reads config.json; kNotFound, kUnsupported or kMalformed otherwise.
  static Result<CheckpointFolder> Open(const std::string& path);
  CheckpointFolder(CheckpointFolder&&) noexcept;
  CheckpointFolder& operator=(CheckpointFolder&&) noexcept;
  ~CheckpointFolder();

  const std::string& path() const { return path_; }
  const Json& config() const { return *config_; }
  std::string PathOf(const std::string& name) const;
  bool Has(const std::string& name) const;
  // Reads a document of the folder; it then counts among files().
  Result<Json> ReadFile(const std::string& name);
  // The up to three statements about the quantization, which must agree; the one with
  // tensor_storage is kept. Absent for a folder that is not quantized.
  Result<std::optional<QuantizationConfig>> ReadQuantization();
  // Maps every shard and fills tensors(). Once, after the documents.
  Status ReadWeights();

  // kIo when a shard shrank or could not be read since it was mapped (mapped_file.h). For whoever
  // has read data, before what follows from them is told.
  Status Intact() const;

  // Every tensor of every shard, sorted by name. Views live as long as the folder.
  std::span<const TensorView> tensors() const { return tensors_; }
  // Null when there is none.
  const TensorView* Find(std::string_view name) const;
  // The shards, and the files that were read beside them, in the order of their names.
  std::span<const CheckpointFile> shards() const { return shards_; }
  std::span<const CheckpointFile> files() const { return files_; }

 private:
  CheckpointFolder();
  Status ReadShards();
  Status MapShard(const std::string& name);
  Status ReadSingleFile();

  std::string path_;
  std::unique_ptr<Json> config_;
  std::vector<MappedFile> maps_;
  std::vector<TensorView> tensors_;
  std::vector<CheckpointFile> shards_;
  std::vector<CheckpointFile> files_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_CHECKPOINT_FOLDER_H_
