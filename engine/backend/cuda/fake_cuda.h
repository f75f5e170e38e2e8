// SPDX-License-Identifier: Apache-2.0
// FakeCuda: a fake device with an execution on it, for tests to derive their fixtures from.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_FAKE_CUDA_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_FAKE_CUDA_H_

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/cuda/execution.h"
#include "engine/backend/cuda/fake_device.h"
#include "engine/base/check.h"

namespace hallmark {

class FakeCuda {
 protected:
  using Problems = std::vector<std::string>;

  CudaExecution& Open() {
    auto execution = CudaExecution::Create(device_);
    CHECK(execution.has_value());
    execution_ = std::move(*execution);
    CHECK(execution_->Finish().has_value());
    device_.ForgetCalls();
    return *execution_;
  }
  // Ends the execution: what it left behind, and every misuse of memory until then.
  Problems Close() {
    execution_.reset();
    return device_.Problems();
  }
  int64_t Count(CudaCallKind kind) const {
    return std::count_if(device_.calls().begin(), device_.calls().end(),
                         [kind](const CudaCall& call) { return call.kind == kind; });
  }

  FakeCudaDevice device_;
  std::unique_ptr<CudaExecution> execution_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_FAKE_CUDA_H_
