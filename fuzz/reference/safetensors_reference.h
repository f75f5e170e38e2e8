// SPDX-License-Identifier: Apache-2.0
// A second, independent reader of safetensors headers, for differential tests alone: slow, small
// and written from the format's rules, it shares no code with engine/format. Accepts exactly what
// the strict rules accept: a header of 1 .. 100,000,000 bytes of UTF-8 JSON with no key twice,
// records of dtype, shape and data_offsets and nothing else, at most 64 extents, sizes without
// overflow, tensors that tile the data section, __metadata__ of strings.
#ifndef HALLMARK_FUZZ_REFERENCE_SAFETENSORS_REFERENCE_H_
#define HALLMARK_FUZZ_REFERENCE_SAFETENSORS_REFERENCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hallmark::reference {

struct Tensor {
  std::string dtype;
  std::vector<uint64_t> shape;
  uint64_t begin = 0;  // in the file
  uint64_t end = 0;
};

struct Table {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// The table of a whole file, or nothing where it must be refused.
std::optional<Table> ReadSafetensors(std::string_view file);

}  // namespace hallmark::reference

#endif  // HALLMARK_FUZZ_REFERENCE_SAFETENSORS_REFERENCE_H_
