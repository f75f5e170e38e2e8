// SPDX-License-Identifier: Apache-2.0
// CudaFixture: a fake device for a test, which at its end holds nothing and has seen no fault.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_CUDA_FIXTURE_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_CUDA_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/backend/cuda/execution.h"
#include "engine/backend/cuda/fake_device.h"

namespace hallmark {

// Nothing is held, nothing was misused.
inline void ExpectClean(const FakeCudaDevice& device) {
  EXPECT_EQ(device.device_bytes(), 0u);
  EXPECT_EQ(device.mapped_bytes(), 0u);
  EXPECT_EQ(device.streams(), 0);
  EXPECT_EQ(device.faults(), std::vector<std::string>{});
}

class CudaFixture : public testing::Test {
 protected:
  void TearDown() override {
    execution_.reset();
    ExpectClean(device_);
  }

  CudaExecution& Open() {
    auto execution = CudaExecution::Create(device_);
    EXPECT_TRUE(execution.has_value());
    execution_ = std::move(*execution);
    EXPECT_TRUE(execution_->Finish().has_value());
    device_.ForgetCalls();
    return *execution_;
  }

  int64_t Count(CudaCallKind kind) const {
    return std::count_if(device_.calls().begin(), device_.calls().end(),
                         [kind](const CudaCall& call) { return call.kind == kind; });
  }

  FakeCudaDevice device_;
  std::unique_ptr<CudaExecution> execution_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_CUDA_FIXTURE_H_
