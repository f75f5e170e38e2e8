// SPDX-License-Identifier: Apache-2.0
// Reads checkpoint values (F32, F16, BF16) as fp32, exactly, from any byte alignment.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_WIDEN_H_
#define HALLMARK_ENGINE_BACKEND_CPU_WIDEN_H_

#include <cstdint>

#include "engine/base/result.h"
#include "engine/format/tensor.h"

namespace hallmark {

// out[i] = element first + i of `tensor`, for i < count. kUnsupported names a tensor of another
// type. The range lies inside the tensor.
Status WidenToFloat(const TensorView& tensor, int64_t first, int64_t count, float* out);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_WIDEN_H_
