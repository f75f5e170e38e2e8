// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/cpu_linear.h"

#include <variant>

#include "engine/backend/cpu/exl3_linear.h"
#include "engine/backend/cpu/plain_linear.h"

namespace hallmark {

Result<std::unique_ptr<CpuLinear>> CpuLinear::Load(const LinearSource& source, CpuTier tier) {
  if (std::holds_alternative<Exl3Group>(source.weights)) return LoadExl3Linear(source, tier);
  return LoadPlainLinear(source, tier);
}

}  // namespace hallmark
