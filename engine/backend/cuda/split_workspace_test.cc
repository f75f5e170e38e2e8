// SPDX-License-Identifier: Apache-2.0
// Clause counters-zero, the host's half: counters are zero on the call's stream before the first
// launch that uses them, and again when they grow; no two streams share them.
#include "engine/backend/cuda/split_workspace.h"

#include <gtest/gtest.h>

#include "engine/backend/cuda/fake_cuda.h"

namespace hallmark {
namespace {

class SplitWorkspaceTest : public testing::Test, protected FakeCuda {
 protected:
  void TearDown() override { EXPECT_EQ(Close(), Problems{}); }
  static Status Use(CudaExecution& execution, size_t partials, size_t counters,
                    Exl3Workspace* workspace) {
    *workspace = TRY(execution.split().Reserve(partials, counters));
    return execution.Launch("LaunchExl3Linear", [](cudaStream_t) { return cudaSuccess; });
  }
  // Whether the last launch is preceded, on its own stream, by a fill of zero over all `counters`.
  bool ZeroedBeforeLaunch(const int32_t* counters, size_t count) const {
    const auto& calls = device_.calls();
    const auto launch = std::find_if(calls.rbegin(), calls.rend(), [](const CudaCall& call) {
      return call.kind == CudaCallKind::kLaunch;
    });
    return std::any_of(launch, calls.rend(), [&](const CudaCall& call) {
      return call.kind == CudaCallKind::kMemset && call.stream == launch->stream &&
             call.address == counters && call.bytes >= count * sizeof(int32_t);
    });
  }
  void ExpectZero(CudaExecution& execution, const int32_t* counters, size_t count) {
    std::vector<int32_t> host(count, 1);
    ASSERT_TRUE(execution.Download(host.data(), counters, count * sizeof(int32_t)).has_value());
    EXPECT_EQ(host, std::vector<int32_t>(count, 0));
  }
};

TEST_F(SplitWorkspaceTest, CountersAreZeroedOnTheCallsStreamBeforeTheFirstLaunch) {
  CudaExecution& execution = Open();
  Exl3Workspace workspace;
  ASSERT_TRUE(Use(execution, 4096, 100, &workspace).has_value());
  EXPECT_TRUE(ZeroedBeforeLaunch(workspace.counters, 100));
  ExpectZero(execution, workspace.counters, 100);
}

TEST_F(SplitWorkspaceTest, GrownCountersAreZeroedAgain) {
  CudaExecution& execution = Open();
  Exl3Workspace workspace;
  ASSERT_TRUE(Use(execution, 4096, 100, &workspace).has_value());
  for (const size_t counters : {size_t{101}, size_t{5000}, size_t{200'000}}) {
    device_.ForgetCalls();
    ASSERT_TRUE(Use(execution, 4096, counters, &workspace).has_value());
    EXPECT_TRUE(ZeroedBeforeLaunch(workspace.counters, counters)) << counters;
    ExpectZero(execution, workspace.counters, counters);
  }
}

// What is large enough stays as the kernels left it: they return counters to zero themselves.
TEST_F(SplitWorkspaceTest, CountersThatSufficeAreLeftAlone) {
  CudaExecution& execution = Open();
  Exl3Workspace first, second;
  ASSERT_TRUE(Use(execution, 4096, 100, &first).has_value());
  device_.ForgetCalls();
  ASSERT_TRUE(Use(execution, size_t{1} << 20, 90, &second).has_value());
  EXPECT_EQ(second.counters, first.counters);
  EXPECT_EQ(Count(CudaCallKind::kMemset), 0);
}

TEST_F(SplitWorkspaceTest, AnotherStreamHasItsOwn) {
  CudaExecution& first = Open();
  Exl3Workspace one, two;
  ASSERT_TRUE(Use(first, 4096, 100, &one).has_value());
  auto second = CudaExecution::Create(device_);
  ASSERT_TRUE(second.has_value());
  ASSERT_TRUE(Use(**second, 4096, 100, &two).has_value());
  EXPECT_NE(one.counters, two.counters);
  EXPECT_NE(one.partials, two.partials);
  EXPECT_TRUE(ZeroedBeforeLaunch(two.counters, 100));
  ExpectZero(**second, two.counters, 100);
}

// The launch before may still count.
TEST_F(SplitWorkspaceTest, GrowthFreesNothingInFlight) {
  CudaExecution& execution = Open();
  Exl3Workspace workspace;
  for (const size_t counters : {size_t{100'000}, size_t{200'000}, size_t{400'000}}) {
    ASSERT_TRUE(Use(execution, counters * 16, counters, &workspace).has_value());
  }
  EXPECT_EQ(Count(CudaCallKind::kFree), 0);
  ASSERT_TRUE(execution.Finish().has_value());
  EXPECT_GT(Count(CudaCallKind::kFree), 0);
}

TEST_F(SplitWorkspaceTest, MemoryThatRunsOutLeavesWhatWasThere) {
  CudaExecution& execution = Open();
  Exl3Workspace before, after;
  ASSERT_TRUE(Use(execution, 4096, 100, &before).has_value());
  device_.allocations_left = 0;
  EXPECT_EQ(execution.split().Reserve(4096, 1 << 20).error().code, Code::kResource);
  ASSERT_TRUE(Use(execution, 4096, 100, &after).has_value());
  EXPECT_EQ(after.counters, before.counters);
}

}  // namespace
}  // namespace hallmark
