// SPDX-License-Identifier: Apache-2.0
// The 4-bit affine kind of CpuLinear (cpu_linear.h): nibbles as stored, scales and biases widened.
// Definition: ref/affine_linear.h.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_AFFINE_LINEAR_H_
#define HALLMARK_ENGINE_BACKEND_CPU_AFFINE_LINEAR_H_

#include <memory>

#include "engine/backend/cpu/cpu_linear.h"

namespace hallmark {

// source.weights holds an AffineLinear. kUnsupported names scales or biases of another type.
Result<std::unique_ptr<CpuLinear>> LoadAffineLinear(const LinearSource& source, CpuTier tier);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_AFFINE_LINEAR_H_
