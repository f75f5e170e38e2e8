// SPDX-License-Identifier: Apache-2.0
// Clause: failure-isolation
#include "engine/backend/cuda/arena.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "engine/backend/cuda/fake_cuda.h"
#include "engine/backend/cuda/grown_buffer.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

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
    // Mostly small, some of about a slab.
    const size_t size = 1 + (word >> 8) % (word % 64 == 1 ? 3 * kMiB : 5000);
    auto buffer = arena.Allocate(size);
    ASSERT_TRUE(buffer.has_value());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % DeviceArena::kAlignment, 0u);
    bytes += size;
    buffers.push_back(std::move(*buffer));
    ASSERT_EQ(arena.bytes_used(), used + bytes);
    ASSERT_EQ(arena.bytes_held(), device_.device_bytes());
    ASSERT_EQ(arena.bytes_held() % SlabMap::kPageBytes, 0u);
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
    for (int i = 0; i < 100; ++i) buffers.push_back(*arena.Allocate(kMiB / 4));
    EXPECT_GE(device_.device_bytes(), before + 23 * kMiB);
    EXPECT_LE(device_.device_bytes(), before + 28 * kMiB);
    EXPECT_LE(Count(CudaCallKind::kAllocate), 13);  // a slab has eight blocks
  }
  EXPECT_EQ(device_.device_bytes(), before);
  EXPECT_EQ(Count(CudaCallKind::kAllocate), Count(CudaCallKind::kFree));
}

TEST_F(DeviceArenaTest, ABlockThatWasGivenBackIsHandedOutAgain) {
  DeviceArena& arena = Open().arena();
  const Buffer left = *arena.Allocate(1000);
  std::optional<Buffer> middle = *arena.Allocate(1000);
  const Buffer right = *arena.Allocate(1000);
  const void* place = middle->data();
  middle.reset();
  EXPECT_EQ(arena.Allocate(1000)->data(), place);
  EXPECT_EQ(Count(CudaCallKind::kAllocate) + Count(CudaCallKind::kFree), 0);
}

TEST_F(DeviceArenaTest, NoBytesAreNoMemoryAndTooManyAreRefused) {
  DeviceArena& arena = Open().arena();
  const auto none = arena.Allocate(0);
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->data(), nullptr);
  EXPECT_EQ(arena.Allocate(SIZE_MAX).error().code, Code::kResource);
  device_.allocations_left = 0;
  EXPECT_EQ(arena.Allocate(3 * kMiB).error().code, Code::kResource);
}

// A launch in flight may still read the buffer.
TEST_F(DeviceArenaTest, AFreedBufferOutlivesLaunchesInFlight) {
  CudaExecution& execution = Open();
  {
    const Buffer buffer = *execution.arena().Allocate(2 * kMiB);
    ASSERT_TRUE(
        execution.Launch("LaunchReader", [](cudaStream_t) { return cudaSuccess; }).has_value());
  }
  EXPECT_EQ(Count(CudaCallKind::kFree), 0);
  ASSERT_TRUE(execution.Finish().has_value());
  EXPECT_EQ(Count(CudaCallKind::kFree), 1);
  EXPECT_EQ(device_.faults(), std::vector<std::string>{});
}

// Near the end of a device's memory there is no room for many blocks at once.
TEST_F(DeviceArenaTest, ASlabThatCannotBeHadIsAskedForSmaller) {
  DeviceArena& arena = Open().arena();
  constexpr size_t kOdd = 33 * kMiB / 16;  // of which few are no whole pages
  const Buffer large = *arena.Allocate(512 * kMiB);
  const size_t before = device_.device_bytes();
  for (const uint64_t room : {64, 32, 20, 8, 4}) {
    device_.memory_limit = before + room * kMiB;
    const auto block = arena.Allocate(kOdd);
    ASSERT_TRUE(block.has_value()) << room;
    EXPECT_LE(device_.device_bytes(), device_.memory_limit);
    EXPECT_GE(2 * (device_.device_bytes() - before), (room - 4) * kMiB);
  }
  device_.memory_limit = before + 2 * kMiB;
  const int64_t calls = Count(CudaCallKind::kAllocate);
  EXPECT_EQ(arena.Allocate(kOdd).error().code, Code::kResource);
  EXPECT_LE(Count(CudaCallKind::kAllocate) - calls, 6);
  EXPECT_TRUE(arena.Allocate(kMiB).has_value());
}

TEST_F(DeviceArenaTest, ALimitIsKeptAndUsedUp) {
  CudaExecution& execution = Open();
  DeviceArena& arena = execution.arena();
  arena.set_limit(22 * kMiB);  // two are taken
  std::vector<Buffer> buffers;
  for (int i = 0; i < 2; ++i) buffers.push_back(*arena.Allocate(8 * kMiB));
  EXPECT_EQ(arena.Allocate(8 * kMiB).error().code, Code::kResource);
  buffers.push_back(*arena.Allocate(4 * kMiB));
  EXPECT_EQ(arena.bytes_held(), 22 * kMiB);
  EXPECT_EQ(arena.Allocate(2 * kMiB).error().code, Code::kResource);
  // What is let go while it is in flight counts until the device is past it.
  ASSERT_TRUE(
      execution.Launch("LaunchReader", [](cudaStream_t) { return cudaSuccess; }).has_value());
  buffers.clear();
  EXPECT_EQ(device_.device_bytes(), 22 * kMiB);
  device_.memory_limit = 22 * kMiB;
  const int64_t refused = Count(CudaCallKind::kAllocate);
  EXPECT_TRUE(arena.Allocate(20 * kMiB).has_value());
  EXPECT_EQ(Count(CudaCallKind::kAllocate) - refused, 1);
}

// Outgrown scratch goes before more is taken: never both at once, and whole pages, so no hole.
TEST_F(DeviceArenaTest, GrownScratchLeavesNothingBehind) {
  DeviceArena& arena = Open().arena();
  const size_t before = arena.bytes_held();
  GrownBuffer scratch(arena);
  arena.set_limit(before + 10 * kMiB);
  for (const size_t mib : {3, 5, 7, 10}) {
    ASSERT_TRUE(scratch.Reserve(mib * kMiB - 1).has_value()) << mib;
    EXPECT_EQ(arena.bytes_held() - before, (mib + 1) / 2 * 2 * kMiB);
  }
  const int64_t moves = scratch.moves();
  EXPECT_EQ(scratch.Reserve(10 * kMiB + 1).error().code, Code::kResource);
  EXPECT_GT(scratch.moves(), moves);  // graphs must not use what is gone
  EXPECT_EQ(scratch.bytes(), 0u);
  EXPECT_TRUE(scratch.Reserve(10 * kMiB).has_value());
}

// Work that is recorded must not take memory that it lets go again: the graph would go on using it.
TEST_F(DeviceArenaTest, NothingIsTakenWhileWorkIsRecorded) {
  CudaExecution& execution = Open();
  const auto graph = execution.stream().Record([&]() -> Status {
    TRY(execution.arena().Allocate(256));
    return {};
  });
  ASSERT_FALSE(graph.has_value());
  EXPECT_EQ(graph.error().code, Code::kInternal);
}

}  // namespace
}  // namespace hallmark
