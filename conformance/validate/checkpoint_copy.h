// SPDX-License-Identifier: Apache-2.0
// CheckpointCopy: a published checkpoint read into memory, so that a test can change one thing and
// write it elsewhere. Data beyond the codebook markers is not kept: headers and sizes are those of
// the source, the data reads as zeros and takes no room on disk. For suites of validation's
// structure step, which reads no more. Naming what is not there aborts, so that no test passes by
// changing nothing.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_CHECKPOINT_COPY_H_
#define HALLMARK_CONFORMANCE_VALIDATE_CHECKPOINT_COPY_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/harness/safetensors_writer.h"

namespace hallmark {

class CheckpointCopy {
 public:
  // Documents (.json) and model.safetensors of `folder`; aborts when there are none.
  explicit CheckpointCopy(const std::string& folder);
  // The golden model with everything that a vendor should add: generation config, chat template,
  // tokenizer_config.json, licence. Validation has nothing to say about it.
  static CheckpointCopy Complete();
  static CheckpointCopy Drafter();

  // Any file but the shards; text as it is.
  void SetFile(const std::string& file, std::string text) { files_[file] = std::move(text); }
  const std::string& File(const std::string& file) const { return files_.at(file); }
  void RemoveFile(const std::string& file);
  // Sets or erases one value of a document by JSON pointer. `json` is JSON text.
  void Set(const std::string& file, const std::string& pointer, const std::string& json);
  void Erase(const std::string& file, const std::string& pointer);

  TensorSpec& Tensor(std::string_view name);
  void Add(TensorSpec tensor);
  void Remove(std::string_view name);
  void RemovePrefix(std::string_view prefix);
  void Rename(std::string_view from, const std::string& to) { Tensor(from).name = to; }

  // Cuts the tensors into two shards, in order, and writes the index. What is added later goes to
  // the first, and not into the index.
  void Shard();
  std::vector<TensorSpec>& shard(int index) { return shards_[static_cast<size_t>(index)]; }
  static std::string ShardFile(int index);

  // Writes the folder anew: what was in it is removed. Aborts when it cannot.
  void Write(const std::string& folder) const;

 private:
  std::map<std::string, std::string> files_;
  std::vector<std::vector<TensorSpec>> shards_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_CHECKPOINT_COPY_H_
