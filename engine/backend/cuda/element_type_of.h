// SPDX-License-Identifier: Apache-2.0
// ElementTypeOf: a tensor's type as the kernels name it.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_ELEMENT_TYPE_OF_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_ELEMENT_TYPE_OF_H_

#include <string>

#include "engine/base/result.h"
#include "engine/format/tensor.h"
#include "kernels/rows/element_type.h"

namespace hallmark {

// kUnsupported for types that do not widen to fp32.
inline Result<ElementType> ElementTypeOf(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kBF16:
      return ElementType::kBf16;
    case DType::kF16:
      return ElementType::kF16;
    case DType::kF32:
      return ElementType::kF32;
    default:
      return Fail(
          Code::kUnsupported,
          "has type " + std::string(DTypeName(tensor.dtype)) + ", expected BF16, F16 or F32",
          tensor.where());
  }
}

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_ELEMENT_TYPE_OF_H_
