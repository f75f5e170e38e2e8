// SPDX-License-Identifier: Apache-2.0
// ReadGoldenTensor: the values of one tensor of a golden file.
#ifndef HALLMARK_CONFORMANCE_HARNESS_GOLDEN_TENSOR_H_
#define HALLMARK_CONFORMANCE_HARNESS_GOLDEN_TENSOR_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/base/result.h"
#include "engine/format/safetensors.h"

namespace hallmark {

// T is int32_t (I32) or float (F32). kMalformed when the tensor is missing or of another type.
template <typename T>
Result<std::vector<T>> ReadGoldenTensor(const SafetensorsFile& file, const std::string& name) {
  static_assert(std::is_same_v<T, int32_t> || std::is_same_v<T, float>);
  constexpr DType kType = std::is_same_v<T, int32_t> ? DType::kI32 : DType::kF32;
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr || tensor->dtype != kType) {
    return Fail(Code::kMalformed,
                "the golden file lacks a tensor of type " + std::string(DTypeName(kType)),
                {.file = file.path(), .tensor = name});
  }
  std::vector<T> values(tensor->bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_GOLDEN_TENSOR_H_
