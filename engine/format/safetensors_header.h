// SPDX-License-Identifier: Apache-2.0
// Walks the JSON header of a safetensors file, record by record, in memory that does not grow with
// the header: nothing is stored, so a hostile header costs nothing to refuse. Not a general JSON
// parser: it knows exactly one grammar, whose nesting is fixed. Clauses: format-accept,
// format-reject. Overlap, holes and repeated names need all records and are safetensors.cc's task.
#ifndef HALLMARK_ENGINE_FORMAT_SAFETENSORS_HEADER_H_
#define HALLMARK_ENGINE_FORMAT_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/format/json_string.h"
#include "engine/format/tensor.h"

namespace hallmark {

// The reference reader's cap on the header's length.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;
// Extents of a shape. The format has no bound; no framework has tensors of more, and without one a
// header could take eight times its own size.
inline constexpr int kMaxRank = 64;
// Bytes before the header: its length as a little-endian u64.
inline constexpr uint64_t kHeaderPrefixBytes = 8;

// One tensor's record. Its own numbers are checked: end - begin is the size that dtype and shape
// give, without overflow, and every extent fits an int64.
struct HeaderRecord {
  JsonString name;
  uint64_t name_byte = 0;  // offset in the file of the name's opening quote
  DType dtype = DType::kU8;
  std::string_view shape;  // e.g. "[2, 3]", checked
  uint64_t begin = 0;      // in the data section
  uint64_t end = 0;
};

class HeaderVisitor {
 public:
  virtual ~HeaderVisitor() = default;
  virtual void Metadata(JsonString key, uint64_t key_byte, JsonString value) = 0;
  virtual void Tensor(const HeaderRecord& record) = 0;
};

// Visits every record of `header` (the JSON text alone). kMalformed or kUnsupported (an unknown
// dtype or field) with the byte in the file and, inside a record, the tensor.
Status WalkHeader(std::string_view header, const std::string& path, HeaderVisitor& visitor);

// The extents of a record's shape.
std::vector<int64_t> ShapeOf(const HeaderRecord& record);

// A name for an error: long ones are cut, so that a message stays small.
std::string NameForError(JsonString name);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_SAFETENSORS_HEADER_H_
