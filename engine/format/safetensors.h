// SPDX-License-Identifier: Apache-2.0
// SafetensorsFile: one safetensors file, checked whole before anything is built from it, and its
// tensors as views into the map. Not for writing, and not for what the tensors mean. As strict as
// the reference reader, and stricter where that one is lax (repeated metadata keys, unknown
// fields, shapes of more than 64 extents). Clauses: format-accept, format-reject. Refusing a header
// allocates less than the file's own size plus 1 MB. Not aligned: see TensorView.
#ifndef HALLMARK_ENGINE_FORMAT_SAFETENSORS_H_
#define HALLMARK_ENGINE_FORMAT_SAFETENSORS_H_

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/mapped_file.h"
#include "engine/base/result.h"
#include "engine/format/tensor.h"

namespace hallmark {

struct SafetensorsTable {
  std::vector<TensorView> tensors;  // sorted by name
  std::map<std::string, std::string> metadata;
};

// Reads the table of a whole file held in `bytes`, which the views point into. kOutOfRange for a
// header above 100,000,000 bytes, else kMalformed or kUnsupported, with the byte in the file and
// the tensor. `path` names the source.
Result<SafetensorsTable> ParseSafetensors(std::span<const std::byte> bytes,
                                          const std::string& path);

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> Open(const std::string& path);

  std::span<const TensorView> tensors() const { return table_.tensors; }
  // Null when there is none. The pointer lives as long as this object.
  const TensorView* Find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return table_.metadata; }
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  const std::string& path() const { return file_.path(); }

 private:
  SafetensorsFile(MappedFile file, SafetensorsTable table)
      : file_(std::move(file)), table_(std::move(table)) {}

  MappedFile file_;
  SafetensorsTable table_;
};

// Binary search by name in a sorted table; null when there is none.
const TensorView* FindTensor(std::span<const TensorView> sorted, std::string_view name);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_SAFETENSORS_H_
