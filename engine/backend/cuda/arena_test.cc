// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/arena.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/backend/cuda/fake_cuda.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

class DeviceArenaTest : public testing::Test, protected FakeCuda {
 protected:
  void TearDown() override { EXPECT_EQ(Close(), Problems{}); }
};

TEST_F(DeviceArenaTest, BlocksAreAlignedApartAndCounted) {
  DeviceArena& arena = Open().arena();
  const size_t used = arena.bytes_used();
  SplitMix64 random(7);
  std::vector<Buffer> buffers;
  size_t bytes = 0;
  for (int round = 0; round < 2000; ++round) {
    const uint64_t word = random.Next();
    if (!buffers.empty() && word % 3 == 0) {
      std::swap(buffers[word / 3 % buffers.size()], buffers.back());
      bytes -= buffers.back().bytes();
      buffers.pop_back();
      continue;
    }
    // Mostly small, some beyond a slab's blocks.
    const size_t size = 1 + (word >> 8) % (word % 16 == 1 ? 2 * DeviceArena::kSmallBytes : 5000);
    auto buffer = arena.Allocate(size);
    ASSERT_TRUE(buffer.has_value());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % DeviceArena::kAlignment, 0u);
    bytes += size;
    buffers.push_back(std::move(*buffer));
    ASSERT_EQ(arena.bytes_used(), used + bytes);
    ASSERT_EQ(arena.bytes_held(), device_.device_bytes());
  }
  std::map<const std::byte*, size_t> ranges;
  for (const Buffer& buffer : buffers) {
    ranges[static_cast<const std::byte*>(buffer.data())] = buffer.bytes();
  }
  ASSERT_EQ(ranges.size(), buffers.size());
  ASSERT_GT(ranges.size(), 100u);
  for (auto range = ranges.begin(); std::next(range) != ranges.end(); ++range) {
    EXPECT_LE(range->first + range->second, std::next(range)->first);
  }
}

TEST_F(DeviceArenaTest, GivesEverySlabBack) {
  DeviceArena& arena = Open().arena();
  const size_t before = device_.device_bytes();
  {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 100; ++i) buffers.push_back(*arena.Allocate(DeviceArena::kSmallBytes));
    EXPECT_GE(device_.device_bytes(), before + 90 * DeviceArena::kSmallBytes);
  }
  EXPECT_EQ(device_.device_bytes(), before);
}

TEST_F(DeviceArenaTest, NoBytesAreNoMemoryAndTooManyAreRefused) {
  DeviceArena& arena = Open().arena();
  const auto none = arena.Allocate(0);
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->data(), nullptr);
  EXPECT_EQ(arena.Allocate(SIZE_MAX).error().code, Code::kResource);
  device_.allocations_left = 0;
  EXPECT_EQ(arena.Allocate(size_t{1} << 20).error().code, Code::kResource);
}

// A launch in flight may still read the buffer.
TEST_F(DeviceArenaTest, AFreedBufferOutlivesLaunchesInFlight) {
  CudaExecution& execution = Open();
  {
    const Buffer buffer = *execution.arena().Allocate(size_t{1} << 20);
    ASSERT_TRUE(
        execution.Launch("LaunchReader", [](cudaStream_t) { return cudaSuccess; }).has_value());
  }
  EXPECT_EQ(Count(CudaCallKind::kFree), 0);
  ASSERT_TRUE(execution.Finish().has_value());
  EXPECT_EQ(Count(CudaCallKind::kFree), 1);
  EXPECT_EQ(device_.faults(), std::vector<std::string>{});
}

}  // namespace
}  // namespace hallmark
