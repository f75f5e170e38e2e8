// SPDX-License-Identifier: Apache-2.0
// Clause: graph-equals-eager.
#include "engine/backend/cuda/graph_cache.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/backend/cuda/fake_cuda.h"

namespace hallmark {
namespace {

class GraphCacheTest : public testing::Test, protected FakeCuda {
 protected:
  void TearDown() override { EXPECT_EQ(Close(), Problems{}); }

  // Work that fills 64 bytes of scratch and launches once; counts how often it was called.
  Status Fill(CudaExecution& execution, int byte, size_t scratch_bytes = 256) {
    ++called_;
    void* scratch = TRY(execution.delta_net().Reserve(scratch_bytes));
    TRY(execution.stream().Fill(scratch, static_cast<uint8_t>(byte), 64));
    return execution.Launch("LaunchNothing", [](cudaStream_t) { return cudaSuccess; });
  }
  Status Run(CudaExecution& execution, uint64_t key, size_t scratch_bytes = 256) {
    return execution.graphs().Run({key}, execution.scratch_moves(), [&] {
      return Fill(execution, static_cast<int>(key), scratch_bytes);
    });
  }
  int FirstScratchByte(CudaExecution& execution) {
    uint8_t byte = 0;
    EXPECT_TRUE(execution.Download(&byte, *execution.delta_net().Reserve(1), 1).has_value());
    return byte;
  }

  int called_ = 0;
};

TEST_F(GraphCacheTest, TheFirstCallRunsTheSecondRecordsTheRestReplay) {
  CudaExecution& execution = Open();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(execution.stream().Fill(*execution.delta_net().Reserve(256), 0, 256).has_value());
    ASSERT_TRUE(Run(execution, 7).has_value());
    EXPECT_EQ(FirstScratchByte(execution), 7) << "call " << i;
  }
  EXPECT_EQ(called_, 2);
  EXPECT_EQ(execution.graphs().replays(), 4);
  EXPECT_EQ(Count(CudaCallKind::kBeginCapture), 1);
  EXPECT_EQ(Count(CudaCallKind::kLaunchGraph), 4);
}

TEST_F(GraphCacheTest, KeysDoNotShareGraphs) {
  CudaExecution& execution = Open();
  for (int i = 0; i < 3; ++i) {
    for (const uint64_t key : {3, 4}) {
      ASSERT_TRUE(Run(execution, key).has_value());
      EXPECT_EQ(FirstScratchByte(execution), static_cast<int>(key));
    }
  }
}

// A graph that was captured before growth would fill memory that went back to the device.
TEST_F(GraphCacheTest, GrownScratchIsRecordedAgain) {
  CudaExecution& execution = Open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Run(execution, 5).has_value());
  const size_t large = size_t{4} << 20;
  ASSERT_TRUE(Run(execution, 6, large).has_value());
  ASSERT_TRUE(execution.Finish().has_value());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(execution.stream().Fill(*execution.delta_net().Reserve(64), 0, 64).has_value());
    ASSERT_TRUE(Run(execution, 5).has_value());
    EXPECT_EQ(FirstScratchByte(execution), 5);
  }
  EXPECT_EQ(Count(CudaCallKind::kBeginCapture), 2);
  EXPECT_EQ(execution.graphs().graphs(), 1u);
}

TEST_F(GraphCacheTest, SplitWorkspaceThatGrowsIsScratchThatMoves) {
  CudaExecution& execution = Open();
  const int64_t before = execution.scratch_moves();
  ASSERT_TRUE(execution.split().Reserve(1024, 4).has_value());
  EXPECT_EQ(execution.scratch_moves(), before + 2);
  ASSERT_TRUE(execution.split().Reserve(1024, 4).has_value());
  EXPECT_EQ(execution.scratch_moves(), before + 2);
  ASSERT_TRUE(execution.split().Reserve(1024, 8).has_value());
  EXPECT_EQ(execution.scratch_moves(), before + 3);
}

TEST_F(GraphCacheTest, WorkThatAGraphCannotHoldRunsAsItIs) {
  CudaExecution& execution = Open();
  uint8_t byte = 0;
  const auto refused = [&](const std::function<Status()>& work) {
    const int64_t replays = execution.graphs().replays();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(execution.graphs().Run({9}, execution.scratch_moves(), work).has_value());
    }
    EXPECT_EQ(execution.graphs().replays(), replays);
  };
  void* memory = *execution.delta_net().Reserve(64);
  ASSERT_TRUE(execution.stream().Fill(memory, 1, 64).has_value());
  refused([&] { return execution.staging().Send(memory, "x", 1); });
  refused([&] { return execution.Download(&byte, memory, 1); });
  refused([&] { return execution.Finish(); });
  refused([&]() -> Status {
    const Buffer buffer = TRY(execution.arena().Allocate(size_t{8} << 20));
    return execution.stream().Fill(buffer.data(), 0, buffer.bytes());
  });
  EXPECT_EQ(byte, 'x');
}

TEST_F(GraphCacheTest, GraphsAndKeysAreBounded) {
  CudaExecution& execution = Open();
  for (int pass = 0; pass < 2; ++pass) {
    for (uint64_t key = 1; key <= GraphCache::kMaxGraphs + 5; ++key) {
      ASSERT_TRUE(Run(execution, key).has_value());
      EXPECT_LE(execution.graphs().graphs(), GraphCache::kMaxGraphs);
    }
  }
  EXPECT_EQ(execution.graphs().graphs(), GraphCache::kMaxGraphs);
  for (uint64_t key = 1000; key < 1000 + 2 * GraphCache::kMaxKeys; ++key) {
    ASSERT_TRUE(Run(execution, key).has_value());
  }
  EXPECT_EQ(execution.graphs().graphs(), 0u);  // with their keys, forgotten
}

TEST_F(GraphCacheTest, NoMemoryForAGraphIsNoError) {
  CudaExecution& execution = Open();
  ASSERT_TRUE(Run(execution, 2).has_value());
  device_.graphs_left = 0;
  ASSERT_TRUE(Run(execution, 2).has_value());
  EXPECT_EQ(execution.graphs().replays(), 0);
  ASSERT_TRUE(Run(execution, 2).has_value());
  EXPECT_EQ(execution.graphs().replays(), 1);
}

TEST_F(GraphCacheTest, OffMeansEager) {
  CudaExecution& execution = Open();
  execution.graphs().set_enabled(false);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Run(execution, 2).has_value());
  EXPECT_EQ(called_, 4);
  EXPECT_EQ(Count(CudaCallKind::kBeginCapture), 0);
}

// Every call in turn fails, in the capture too: the error comes out, and nothing is held.
TEST_F(GraphCacheTest, AFailureAnywhereLosesTheDeviceAndLeavesNothing) {
  for (int64_t failing = 0;; ++failing) {
    CudaExecution& execution = Open();
    device_.calls_left = failing;
    Status status;
    for (int i = 0; i < 4 && status.has_value(); ++i) status = Run(execution, 2);
    const bool reached = device_.calls_left < 0;
    device_.calls_left = -1;
    EXPECT_EQ(status.has_value(), !reached) << failing;
    if (reached) {
      EXPECT_EQ(status.error().code, Code::kDevice);
    }
    EXPECT_EQ(Close(), Problems{}) << failing;
    if (!reached) break;
    ASSERT_LT(failing, 100);
  }
}

}  // namespace
}  // namespace hallmark
