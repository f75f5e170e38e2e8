// SPDX-License-Identifier: Apache-2.0
// The plain kind of CpuLinear (cpu_linear.h): BF16, F16 or F32 weights, kept in their own type.
// Definition: ref/plain_linear.h.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_PLAIN_LINEAR_H_
#define HALLMARK_ENGINE_BACKEND_CPU_PLAIN_LINEAR_H_

#include <memory>

#include "engine/backend/cpu/cpu_linear.h"

namespace hallmark {

// source.weights holds a PlainLinear. kUnsupported names a weight or bias of another type.
Result<std::unique_ptr<CpuLinear>> LoadPlainLinear(const LinearSource& source, CpuTier tier);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_PLAIN_LINEAR_H_
