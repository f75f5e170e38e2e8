// SPDX-License-Identifier: Apache-2.0
// Clause: failure-isolation
#include "engine/backend/slab_map.h"

#include <gtest/gtest.h>

#include <vector>

namespace hallmark {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kBase = kMiB << 20;

SlabMap OneSlab() {
  SlabMap map;
  map.AddSlab(kBase, 2 * kMiB);
  return map;
}

TEST(SlabMap, CutsBlocksInOrderInStepsOf256) {
  SlabMap map = OneSlab();
  EXPECT_EQ(map.Take(1), kBase);
  EXPECT_EQ(map.Take(256), kBase + 256);
  EXPECT_EQ(map.Take(257), kBase + 512);
  EXPECT_EQ(map.Take(1), kBase + 1024);
  EXPECT_EQ(map.free_bytes(), 2 * kMiB - 1280);
  EXPECT_EQ(map.Take(2 * kMiB - 1280 + 1), std::nullopt);
  EXPECT_EQ(map.Take(2 * kMiB - 1280), kBase + 1280);
  EXPECT_EQ(map.Take(1), std::nullopt);
  EXPECT_EQ(map.held_bytes(), 2 * kMiB);
}

TEST(SlabMap, TakesTheSmallestRangeThatHoldsABlock) {
  SlabMap map = OneSlab();
  const uint64_t large = *map.Take(4096);
  map.Take(256);
  const uint64_t small = *map.Take(512);
  map.Take(256);
  map.Give(large, 4096);
  map.Give(small, 512);
  EXPECT_EQ(map.Take(512), small);
  EXPECT_EQ(map.Take(512), large);
  EXPECT_EQ(map.Take(4096 - 512), large + 512);
}

// Three blocks side by side, let go in every order: one range again.
TEST(SlabMap, JoinsWhatIsFreeOnEitherSide) {
  for (const std::vector<int>& order : std::vector<std::vector<int>>{
           {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    SlabMap map = OneSlab();
    const uint64_t first = *map.Take(256);
    uint64_t blocks[3];
    for (uint64_t& block : blocks) block = *map.Take(1024);
    map.Take(map.largest_free_bytes());
    for (const int i : order) EXPECT_EQ(map.Give(blocks[i], 1024), std::nullopt);
    EXPECT_EQ(map.largest_free_bytes(), 3 * 1024u);
    EXPECT_EQ(map.Take(3 * 1024), first + 256);
  }
}

TEST(SlabMap, ASlabWithoutBlocksIsForgotten) {
  SlabMap map = OneSlab();
  const uint64_t a = *map.Take(300);
  const uint64_t b = *map.Take(300);
  EXPECT_EQ(map.Give(a, 300), std::nullopt);
  const auto slab = map.Give(b, 300);
  ASSERT_TRUE(slab.has_value());
  EXPECT_EQ(slab->address, kBase);
  EXPECT_EQ(slab->bytes, 2 * kMiB);
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.held_bytes() + map.free_bytes() + map.largest_free_bytes(), 0u);
}

TEST(SlabMap, RangesEndWhereSlabsMeet) {
  SlabMap map = OneSlab();
  map.AddSlab(kBase + 2 * kMiB, 2 * kMiB);
  EXPECT_EQ(map.Take(2 * kMiB + 1), std::nullopt);
  const uint64_t a = *map.Take(2 * kMiB);
  const uint64_t b = *map.Take(2 * kMiB);
  EXPECT_EQ(a, kBase);
  EXPECT_EQ(map.Give(a, 2 * kMiB)->bytes, 2 * kMiB);
  EXPECT_EQ(map.Give(b, 2 * kMiB)->address, kBase + 2 * kMiB);
  map.AddSlab(kBase, 2 * kMiB);
  map.AddSlab(kBase + 2 * kMiB, 2 * kMiB);
  const uint64_t c = *map.Take(2 * kMiB);
  const uint64_t d = *map.Take(kMiB);
  map.Take(256);
  EXPECT_EQ(map.Give(d, kMiB), std::nullopt);  // beside c's slab, and not joined to it
  EXPECT_EQ(map.Give(c, 2 * kMiB)->bytes, 2 * kMiB);
  EXPECT_EQ(map.largest_free_bytes(), kMiB);
}

TEST(SlabMap, SlabsHoldAWholeNumberOfBlocks) {
  SlabMap map;
  // Whole pages, or nearly: a slab of its own.
  for (const uint64_t bytes : {2 * kMiB, 8 * kMiB, 8 * kMiB - 4096, 909 * kMiB + 1}) {
    EXPECT_EQ(map.BlocksPerSlab(bytes), 1u) << bytes;
  }
  EXPECT_EQ(map.BlocksPerSlab(256), 8161u);  // of 8192 in two MiB
  EXPECT_EQ(map.BlocksPerSlab(kMiB), 2u);
  EXPECT_EQ(map.BlocksPerSlab(3 * kMiB), 1u);
  map.AddSlab(kBase, 100 * kMiB);
  EXPECT_EQ(map.BlocksPerSlab(3 * kMiB), 2u);
  EXPECT_EQ(map.BlocksPerSlab(8 * kMiB), 1u);
  const uint64_t odd = 37 * kMiB + 3 * kMiB / 16;  // no few of it are whole pages
  EXPECT_EQ(map.BlocksPerSlab(odd), 1u);
  map.AddSlab(2 * kBase, 1200 * kMiB);
  EXPECT_EQ(map.BlocksPerSlab(odd), 2u);  // within 81 MiB
  map.AddSlab(3 * kBase, 8000 * kMiB);
  EXPECT_EQ(map.BlocksPerSlab(odd), 3u);  // within 128 MiB
  EXPECT_EQ(map.BlocksPerSlab(3 * kMiB), 2u);
  EXPECT_EQ(SlabMap::SlabFor(3 * kMiB, 42), 126 * kMiB);
  EXPECT_EQ(SlabMap::SlabFor(3 * kMiB, 41), 124 * kMiB);
  EXPECT_EQ(SlabMap::SlabFor(1), 2 * kMiB);
}

}  // namespace
}  // namespace hallmark
