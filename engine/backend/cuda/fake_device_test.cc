// SPDX-License-Identifier: Apache-2.0
// The fake device itself: each misuse that it exists to see, it sees.
#include "engine/backend/cuda/fake_device.h"

#include <gtest/gtest.h>

namespace hallmark {
namespace {

using Faults = std::vector<std::string>;

TEST(FakeCudaDevice, SeesMemoryFreedInFlight) {
  FakeCudaDevice device;
  const cudaStream_t stream = *device.CreateStream();
  void* filled = *device.Allocate(64);
  void* idle = *device.Allocate(64);
  ASSERT_TRUE(device.Memset(filled, 0, 64, stream).has_value());
  device.Free(idle);
  EXPECT_EQ(device.faults(), Faults{});
  device.Free(filled);
  EXPECT_EQ(device.faults(), Faults{"memory was freed while in flight"});
}

TEST(FakeCudaDevice, TakesALaunchToUseEverything) {
  FakeCudaDevice device;
  const cudaStream_t stream = *device.CreateStream();
  const MappedMemory mapped = *device.AllocateMapped(64);
  ASSERT_TRUE(device.Launch("LaunchNothing", stream, [](cudaStream_t) { return cudaErrorUnknown; })
                  .has_value());  // the launcher is not called
  device.FreeMapped(mapped);
  EXPECT_EQ(device.faults(), Faults{"memory was freed while in flight"});
}

TEST(FakeCudaDevice, SeesMemoryThatIsNotThere) {
  FakeCudaDevice device;
  const cudaStream_t stream = *device.CreateStream();
  auto* memory = static_cast<std::byte*>(*device.Allocate(64));
  std::byte pageable[64] = {};
  ASSERT_TRUE(device.Memset(memory + 32, 0, 64, stream).has_value());
  ASSERT_TRUE(device.CopyToDevice(memory, pageable, 64, stream).has_value());
  ASSERT_TRUE(device.Synchronize(stream).has_value());
  device.Free(memory);
  device.Free(memory);
  ASSERT_TRUE(device.Memset(memory, 0, 64, stream).has_value());
  ASSERT_TRUE(device.Memset(memory, 0, 64, nullptr).has_value());
  EXPECT_EQ(device.faults().size(), 6u);
}

TEST(FakeCudaDevice, CopiesWhenTheStreamIsWaitedFor) {
  FakeCudaDevice device;
  const cudaStream_t stream = *device.CreateStream();
  void* memory = *device.Allocate(1);
  const MappedMemory host = *device.AllocateMapped(2);
  host.host[0] = std::byte{1};
  ASSERT_TRUE(device.CopyToDevice(memory, host.host, 1, stream).has_value());
  host.host[0] = std::byte{2};  // too early
  ASSERT_TRUE(device.CopyToHost(host.host + 1, memory, 1, stream).has_value());
  EXPECT_NE(host.host[1], std::byte{2});
  ASSERT_TRUE(device.Synchronize(stream).has_value());
  EXPECT_EQ(host.host[1], std::byte{2});
}

TEST(FakeCudaDevice, FailsAsPlanned) {
  FakeCudaDevice device;
  device.calls_left = 1;
  const cudaStream_t stream = *device.CreateStream();
  EXPECT_EQ(device.Allocate(1).error().code, Code::kDevice);
  device.allocations_left = 1;
  EXPECT_TRUE(device.Allocate(1).has_value());
  EXPECT_EQ(device.Allocate(1).error().code, Code::kResource);
  device.launches_left = 0;
  EXPECT_FALSE(device.Launch("L", stream, {}).has_value());
  EXPECT_EQ(device.Synchronize(stream).error().code, Code::kDevice);
  EXPECT_TRUE(device.lost());
}

}  // namespace
}  // namespace hallmark
