// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/parallel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace hallmark {
namespace {

TEST(ThreadPool, RunsEveryIndexOnceWhateverTheCountAndTheTeam) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t count : {0, 1, 2, 7, 1000, 65535, 65536, 200001}) {
      std::vector<uint8_t> seen(static_cast<size_t>(count), 0);
      pool.ParallelFor(count, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; });
      int64_t once = 0;
      for (const uint8_t times : seen) once += times == 1 ? 1 : 0;
      EXPECT_EQ(once, count) << threads << " threads";
    }
  }
}

TEST(ThreadPool, MembersAreNumberedWithinTheTeam) {
  ThreadPool pool(3);
  std::vector<int> members(1000, -1);
  pool.ParallelFor(1000, [&](int64_t i, int member) { members[static_cast<size_t>(i)] = member; });
  for (const int member : members) {
    EXPECT_GE(member, 0);
    EXPECT_LT(member, 3);
  }
}

// Short operations one after the other, some after a pause long enough for the team to sleep: a
// lost wake-up hangs here, a claim on a finished operation gives a wrong count.
TEST(ThreadPool, ManyShortOperationsInARowLoseNothing) {
  ThreadPool pool(4);
  for (int round = 0; round < 20000; ++round) {
    int64_t squares[5] = {};
    const int64_t count = 2 + round % 4;
    pool.ParallelFor(count, [&](int64_t i) { squares[i] = i * i + round; });
    for (int64_t i = 0; i < 5; ++i) ASSERT_EQ(squares[i], i < count ? i * i + round : 0);
    if (round % 4000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
}

TEST(ThreadPool, ScratchIsAlignedAndSeparateForEachMember) {
  ThreadPool pool(3);
  ASSERT_TRUE(pool.Reserve(1000, 100).has_value());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pool.shared_scratch()) % 64, 0u);
  for (int member = 0; member < 3; ++member) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pool.own_scratch(member)) % 64, 0u);
    EXPECT_GE(pool.own_scratch(member) - pool.own_scratch(0), 100 * member);
  }
  std::byte* before = pool.shared_scratch();
  ASSERT_TRUE(pool.Reserve(900, 90).has_value());
  EXPECT_EQ(pool.shared_scratch(), before);
}

TEST(ThreadPool, ScratchThatCannotBeHadIsAResourceError) {
  ThreadPool pool(2);
  const Status status = pool.Reserve(size_t{1} << 62, 64);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kResource);
}

TEST(ThreadPool, ThisProcessHasAtLeastOneThread) { EXPECT_GE(DefaultThreads(), 1); }

}  // namespace
}  // namespace hallmark
