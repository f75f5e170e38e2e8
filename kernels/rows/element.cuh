// SPDX-License-Identifier: Apache-2.0
// Stored elements as device types, and the choice of one by ElementType.
#ifndef HALLMARK_KERNELS_ROWS_ELEMENT_CUH_
#define HALLMARK_KERNELS_ROWS_ELEMENT_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "engine/base/float_types.h"
#include "kernels/rows/element_type.h"

namespace hallmark {

struct Bf16Element {
  uint16_t bits;
  __device__ __forceinline__ float Widen() const { return Bf16ToFloat(bits); }
};
struct F16Element {
  uint16_t bits;
  __device__ __forceinline__ float Widen() const { return __half2float(__ushort_as_half(bits)); }
};
struct F32Element {
  float value;
  __device__ __forceinline__ float Widen() const { return value; }
};

// run(pointer to elements of `type`); cudaErrorInvalidValue for a type that does not exist.
template <typename Run>
cudaError_t WithElements(ElementType type, const void* data, const Run& run) {
  switch (type) {
    case ElementType::kBf16:
      return run(static_cast<const Bf16Element*>(data));
    case ElementType::kF16:
      return run(static_cast<const F16Element*>(data));
    case ElementType::kF32:
      return run(static_cast<const F32Element*>(data));
  }
  return cudaErrorInvalidValue;
}

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_ROWS_ELEMENT_CUH_
