// SPDX-License-Identifier: Apache-2.0
// CudaBackend: the operations on an NVIDIA GPU of compute capability 8.0 or higher. EXL3 linears
// and attention have their own order of sums (docs/kernels.md); everything else has the bits of the
// CPU backend. Asynchronous, on one stream of its own. Weights and buffers must go before it does.
// Clauses row-invariance, counters-zero, mapped-equals-device, failure-isolation.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_CUDA_BACKEND_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_CUDA_BACKEND_H_

#include <cstdint>
#include <memory>

#include "engine/backend/backend.h"
#include "engine/base/result.h"

namespace hallmark {

class CudaDevice;

struct CudaBackendOptions {
  bool mapped_tables = false;  // embedding tables stay in page-locked host memory
  uint64_t device_bytes = 0;   // the most that weights and buffers may take; 0: what there is
};

// On the first device that CUDA shows. Errors: OpenRuntimeDevice (runtime_device.h), and
// kUnsupported when the build has no code for the device.
Result<std::unique_ptr<Backend>> MakeCudaBackend(const CudaBackendOptions& options);

// The same on a device of the caller's, which outlives the backend.
Result<std::unique_ptr<Backend>> MakeCudaBackend(CudaDevice& device,
                                                 const CudaBackendOptions& options);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_CUDA_BACKEND_H_
