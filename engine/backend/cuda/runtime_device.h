// SPDX-License-Identifier: Apache-2.0
// The CudaDevice of a real GPU: the first that the CUDA runtime shows (CUDA_VISIBLE_DEVICES says
// which that is).
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_RUNTIME_DEVICE_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_RUNTIME_DEVICE_H_

#include <memory>

#include "engine/backend/cuda/device.h"
#include "engine/base/result.h"

namespace hallmark {

// kUnsupported without a driver, with one older than the build's CUDA, without a device, or with
// one of a compute capability below 8.0; kResource if its memory cannot hold a context. The locator
// names --device.
Result<std::unique_ptr<CudaDevice>> OpenRuntimeDevice();

// "13.0" of 13000.
std::string CudaVersionText(int version);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_RUNTIME_DEVICE_H_
