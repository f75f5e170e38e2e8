// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/widen.h"

#include <cstring>
#include <string>

#include "engine/base/check.h"
#include "engine/base/float_types.h"

namespace hallmark {

Status WidenToFloat(const TensorView& tensor, int64_t first, int64_t count, float* out) {
  const int64_t size = DTypeSize(tensor.dtype);
  CHECK(first >= 0 && count >= 0);
  CHECK(static_cast<uint64_t>((first + count) * size) <= tensor.bytes.size());
  const std::byte* source = tensor.bytes.data() + first * size;
  switch (tensor.dtype) {
    case DType::kF32:
      std::memcpy(out, source, static_cast<size_t>(count) * sizeof(float));
      return {};
    case DType::kF16:
    case DType::kBF16:
      for (int64_t i = 0; i < count; ++i) {
        uint16_t bits;
        std::memcpy(&bits, source + 2 * i, 2);
        out[i] = tensor.dtype == DType::kF16 ? HalfToFloat(bits) : Bf16ToFloat(bits);
      }
      return {};
    default:
      return Fail(
          Code::kUnsupported,
          "has type " + std::string(DTypeName(tensor.dtype)) + ", expected F32, F16 or BF16",
          tensor.where());
  }
}

}  // namespace hallmark
