// SPDX-License-Identifier: Apache-2.0
// The EXL3 kind of CpuLinear (cpu_linear.h): rotate and round the input once, sum over decoded
// panels, rotate the output. Definition: ref/exl3_linear.h.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_EXL3_LINEAR_H_
#define HALLMARK_ENGINE_BACKEND_CPU_EXL3_LINEAR_H_

#include <memory>

#include "engine/backend/cpu/cpu_linear.h"

namespace hallmark {

// source.weights holds an Exl3Group.
Result<std::unique_ptr<CpuLinear>> LoadExl3Linear(const LinearSource& source, CpuTier tier);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_EXL3_LINEAR_H_
