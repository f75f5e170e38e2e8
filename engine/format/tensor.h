// SPDX-License-Identifier: Apache-2.0
// DType and TensorView: a named, typed view of bytes in a mapped checkpoint file.
#ifndef HALLMARK_ENGINE_FORMAT_TENSOR_H_
#define HALLMARK_ENGINE_FORMAT_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace hallmark {

// The element types of the safetensors format.
enum class DType {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kI64,
  kU64,
  kF64,
};

// Bytes of one element.
int DTypeSize(DType dtype);
// The format's own spelling, e.g. "BF16".
std::string_view DTypeName(DType dtype);
std::optional<DType> ParseDType(std::string_view name);

// Row-major, little-endian. `bytes` points into a mapped file and may start at any offset: copy
// values out, never cast the pointer. Valid while the checkpoint it came from is open.
struct TensorView {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  std::string file;          // the shard's path
  uint64_t file_offset = 0;  // of bytes.data() in that file

  int64_t elements() const;
  Locator where() const { return {.file = file, .byte = file_offset, .tensor = name}; }
};

// "[320, 15520, 96]".
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_TENSOR_H_
