// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/stream.h"

#include <gtest/gtest.h>

#include "engine/backend/cuda/fake_cuda.h"

namespace hallmark {
namespace {

class CudaStreamTest : public testing::Test, protected FakeCuda {
 protected:
  void TearDown() override { EXPECT_EQ(Close(), Problems{}); }
};

TEST_F(CudaStreamTest, RetiredMemoryWaitsForWhatIsInFlight) {
  CudaStream& stream = Open().stream();
  const size_t before = device_.device_bytes();
  void* memory = *stream.Allocate(512);
  ASSERT_TRUE(stream.Fill(memory, 0, 512).has_value());
  stream.Retire(memory);
  EXPECT_EQ(device_.device_bytes(), before + 512);
  ASSERT_TRUE(stream.Synchronize().has_value());
  EXPECT_EQ(device_.device_bytes(), before);
  // With nothing in flight it goes at once.
  stream.Retire(*stream.Allocate(512));
  EXPECT_EQ(device_.device_bytes(), before);
}

TEST_F(CudaStreamTest, RetiredMemoryIsFoundWhenMemoryRunsOut) {
  CudaStream& stream = Open().stream();
  void* memory = *stream.Allocate(4096);
  ASSERT_TRUE(stream.Fill(memory, 0, 4096).has_value());
  device_.memory_limit = device_.device_bytes() + 1024;
  stream.Retire(memory);
  auto next = stream.Allocate(4096);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(stream.Allocate(4096).error().code, Code::kResource);
  EXPECT_FALSE(stream.lost().has_value());  // short memory is no fault of the device
  stream.Retire(*next);
}

TEST_F(CudaStreamTest, ALostDeviceIsToldTheSameWayEverAfter) {
  CudaStream& stream = Open().stream();
  void* memory = *stream.Allocate(512);
  device_.launches_left = 0;
  const Status lost = stream.Launch("LaunchNothing", [](cudaStream_t) { return cudaSuccess; });
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Code::kDevice);
  EXPECT_EQ(lost.error().where.launcher, "LaunchNothing");
  const size_t calls = device_.calls().size();
  for (const Status& later :
       {stream.Fill(memory, 0, 512), stream.Synchronize(), Status(Fail(stream.Allocate(1).error())),
        Status(Fail(stream.AllocateMapped(1).error())), stream.CopyOnDevice(memory, memory, 1)}) {
    ASSERT_FALSE(later.has_value());
    EXPECT_EQ(later.error().ToString(), lost.error().ToString());
  }
  EXPECT_EQ(device_.calls().size(), calls);  // none of them reached the device
  stream.Retire(memory);
}

// One failed call in the middle: what was enqueued before it is waited for before memory goes.
TEST_F(CudaStreamTest, MemoryIsSafeAfterACallThatFails) {
  CudaStream& stream = Open().stream();
  void* memory = *stream.Allocate(512);
  ASSERT_TRUE(stream.Fill(memory, 0, 512).has_value());
  device_.calls_left = 0;
  EXPECT_EQ(stream.Fill(memory, 1, 512).error().code, Code::kDevice);
  stream.Retire(memory);
}

}  // namespace
}  // namespace hallmark
