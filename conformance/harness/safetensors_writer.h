// SPDX-License-Identifier: Apache-2.0
// Writes safetensors files for tests: in the order given, so that tensors fall on odd offsets, and
// sparse where no bytes are given, so that a file of any size costs nothing. Not a product writer:
// it also writes what readers must refuse.
#ifndef HALLMARK_CONFORMANCE_HARNESS_SAFETENSORS_WRITER_H_
#define HALLMARK_CONFORMANCE_HARNESS_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/format/tensor.h"

namespace hallmark {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  // The data; empty: a hole of the tensor's size, which reads as zeros.
  std::string bytes;

  uint64_t size() const;
};

struct SafetensorsStyle {
  bool align_data = false;  // pad the header with spaces so that the data begins at a multiple of 8
  size_t spaces = 0;        // further spaces after the header's closing brace
  std::map<std::string, std::string> metadata;
};

// The header's JSON, minified, records in the order given.
std::string SafetensorsHeader(const std::vector<TensorSpec>& tensors,
                              const SafetensorsStyle& style = {});

// `header` behind its length, then `data`.
std::string SafetensorsText(const std::string& header, const std::string& data = "");

// Writes the file; kIo when the system refuses.
Status WriteSafetensors(const std::string& path, const std::vector<TensorSpec>& tensors,
                        const SafetensorsStyle& style = {});

// Writes any file.
Status WriteText(const std::string& path, const std::string& text);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_SAFETENSORS_WRITER_H_
