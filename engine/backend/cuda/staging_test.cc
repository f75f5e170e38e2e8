// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/staging.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/backend/cuda/fake_cuda.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

class StagingBufferTest : public testing::Test, protected FakeCuda {
 protected:
  void TearDown() override { EXPECT_EQ(Close(), Problems{}); }
};

std::vector<std::byte> RandomBytes(size_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
  return bytes;
}

// More than the buffer holds, from sources that are misaligned and gone at once: the fake device
// reads staging memory only when the stream is waited for.
TEST_F(StagingBufferTest, WhatIsSentArrivesThoughItsSourceIsGone) {
  CudaExecution& execution = Open();
  const std::vector<std::byte> expected = RandomBytes(2 * StagingBuffer::kBytes + 777, 1);
  const Buffer target = *execution.arena().Allocate(expected.size());
  auto* to = static_cast<std::byte*>(target.data());
  for (size_t done = 0; done < expected.size();) {
    const size_t count = std::min<size_t>(expected.size() - done, 300'001);
    std::vector<std::byte> source(count + 1);
    std::copy_n(expected.begin() + static_cast<int64_t>(done), count, source.begin() + 1);
    ASSERT_TRUE(execution.staging().Send(to + done, source.data() + 1, count).has_value());
    std::fill(source.begin(), source.end(), std::byte{0});
    done += count;
  }
  std::vector<std::byte> found(expected.size());
  ASSERT_TRUE(execution.Download(found.data(), to, found.size()).has_value());
  EXPECT_TRUE(found == expected);
}

TEST_F(StagingBufferTest, OneTransferMayBeLargerThanTheBuffer) {
  CudaExecution& execution = Open();
  const std::vector<std::byte> expected = RandomBytes(StagingBuffer::kBytes + 1, 2);
  const Buffer target = *execution.arena().Allocate(expected.size());
  ASSERT_TRUE(
      execution.staging().Send(target.data(), expected.data(), expected.size()).has_value());
  std::vector<std::byte> found(expected.size());
  ASSERT_TRUE(execution.Download(found.data(), target.data(), found.size()).has_value());
  EXPECT_TRUE(found == expected);
}

// Small sends between two waits do not wait themselves.
TEST_F(StagingBufferTest, SmallSendsDoNotWait) {
  CudaExecution& execution = Open();
  const Buffer target = *execution.arena().Allocate(64);
  const int64_t value = 1;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(execution.staging().Send(target.data(), &value, sizeof(value)).has_value());
  }
  EXPECT_EQ(Count(CudaCallKind::kSynchronize), 0);
}

}  // namespace
}  // namespace hallmark
