// SPDX-License-Identifier: Apache-2.0
// CpuBackend: the reference backend. Scalar, AVX2 and AVX-512 tiers give the same bits, with any
// number of threads; the tier and the threads change speed alone.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_CPU_BACKEND_H_
#define HALLMARK_ENGINE_BACKEND_CPU_CPU_BACKEND_H_

#include <memory>
#include <optional>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/tier.h"

namespace hallmark {

struct CpuBackendOptions {
  int threads = 0;              // 0: as many as the machine has
  std::optional<CpuTier> tier;  // none: the best this machine has
};

// kUnsupported if the machine lacks the tier asked for; kOutOfRange for a bad thread count.
Result<std::unique_ptr<Backend>> MakeCpuBackend(const CpuBackendOptions& options);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_CPU_BACKEND_H_
