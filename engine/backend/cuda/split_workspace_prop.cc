// SPDX-License-Identifier: Apache-2.0
// Clause: counters-zero
// Whatever two streams ask for, and whatever lay in the memory they get: the counters of a launch
// are zero, and no one else's.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/backend/cuda/execution.h"
#include "engine/backend/cuda/fake_device.h"

namespace hallmark {
namespace {

// Memory that goes back full of ones.
void Dirty(CudaExecution& execution, size_t bytes) {
  const auto taken = execution.arena().Allocate(bytes);
  RC_ASSERT(taken.has_value());
  RC_ASSERT(execution.stream().Fill(taken->data(), 0xFF, bytes).has_value());
}

RC_GTEST_PROP(SplitWorkspaceHistories, CountersAreZeroAndItsStreamsOwn, ()) {
  FakeCudaDevice device;
  {
    std::unique_ptr<CudaExecution> streams[2];
    for (auto& stream : streams) {
      auto made = CudaExecution::Create(device);
      RC_ASSERT(made.has_value());
      stream = std::move(*made);
    }
    const int32_t* counters[2] = {};
    int64_t launches[2] = {};
    const auto steps = *rc::gen::inRange(1, 24);
    for (int i = 0; i < steps; ++i) {
      const size_t who = *rc::gen::inRange<size_t>(0, 2);
      CudaExecution& execution = *streams[who];
      if (*rc::gen::arbitrary<bool>()) Dirty(execution, *rc::gen::inRange<size_t>(1, 1 << 20));
      const auto count = *rc::gen::inRange<size_t>(0, 4000);
      const auto workspace =
          execution.split().Reserve(*rc::gen::inRange<size_t>(0, 1 << 18), count);
      RC_ASSERT(workspace.has_value());
      RC_ASSERT(execution.split().counters().bytes() >= count * sizeof(int32_t));
      RC_ASSERT(execution.split().launches() == (launches[who] += count > 0 ? 1 : 0));
      counters[who] = workspace->counters;
      if (count == 0) continue;
      RC_ASSERT(counters[0] != counters[1]);
      std::vector<int32_t> host(count, 1);
      RC_ASSERT(execution.Download(host.data(), workspace->counters, count * sizeof(int32_t))
                    .has_value());
      RC_ASSERT(std::all_of(host.begin(), host.end(), [](int32_t value) { return value == 0; }));
    }
  }
  RC_ASSERT(device.Problems().empty());
}

}  // namespace
}  // namespace hallmark
