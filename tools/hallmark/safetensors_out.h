// SPDX-License-Identifier: Apache-2.0
// Writing safetensors files: a header, then the tensors in the order given. Not a reader: that is
// engine/format/safetensors.h.
#ifndef HALLMARK_TOOLS_HALLMARK_SAFETENSORS_OUT_H_
#define HALLMARK_TOOLS_HALLMARK_SAFETENSORS_OUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"

namespace hallmark {

struct TensorOut {
  std::string name;            // of letters, digits, '.' and '_'
  std::string type;            // "F32", "I32"
  std::vector<int64_t> shape;  // its product times the type's size is the size of `bytes`
  std::span<const std::byte> bytes;
};

// The file appears whole or not at all, as WriteFileAtomically has it.
Status WriteSafetensors(const std::string& path, std::span<const TensorOut> tensors);

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_HALLMARK_SAFETENSORS_OUT_H_
