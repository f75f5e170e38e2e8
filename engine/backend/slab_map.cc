// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/slab_map.h"

#include <algorithm>
#include <iterator>

#include "engine/base/check.h"

namespace hallmark {
namespace {

constexpr uint64_t kMostWaste = 256;   // one part of so many, of a slab's blocks
constexpr uint64_t kHeldPerSlab = 16;  // parts of what is held that make the next slab

}  // namespace

uint64_t SlabMap::BlocksPerSlab(uint64_t bytes) const {
  const uint64_t block = BlockBytes(bytes);
  const uint64_t slab = std::clamp(held_bytes_ / kHeldPerSlab, kPageBytes, kMostSlabBytes);
  const uint64_t most = std::max<uint64_t>(1, slab / block);
  for (uint64_t blocks = 1; blocks < most; ++blocks) {
    const uint64_t waste = SlabFor(bytes, blocks) - blocks * block;
    if (waste * kMostWaste <= blocks * block) return blocks;
  }
  return most;
}

void SlabMap::AddSlab(uint64_t address, uint64_t bytes) {
  CHECK(slabs_.emplace(address, bytes).second);
  held_bytes_ += bytes;
  AddFree(address, bytes);
}

std::optional<uint64_t> SlabMap::Take(uint64_t bytes) {
  const uint64_t block = BlockBytes(bytes);
  const auto best = sizes_.lower_bound({block, 0});
  if (best == sizes_.end()) return std::nullopt;
  const auto [size, address] = *best;
  RemoveFree(free_.find(address));
  if (size > block) AddFree(address + block, size - block);
  return address;
}

std::optional<SlabMap::Range> SlabMap::Give(uint64_t address, uint64_t bytes) {
  const auto slab = std::prev(slabs_.upper_bound(address));
  Range range{address, BlockBytes(bytes)};
  // A slab may lie right beside another, whose ranges are not its own.
  const auto next = free_.find(range.address + range.bytes);
  if (next != free_.end() && !slabs_.contains(next->first)) {
    range.bytes += next->second;
    RemoveFree(next);
  }
  const auto after = free_.lower_bound(range.address);
  if (after != free_.begin() && range.address != slab->first) {
    const auto before = std::prev(after);
    if (before->first + before->second == range.address) {
      range = {before->first, before->second + range.bytes};
      RemoveFree(before);
    }
  }
  if (range.bytes < slab->second) {
    AddFree(range.address, range.bytes);
    return std::nullopt;
  }
  held_bytes_ -= slab->second;
  slabs_.erase(slab);
  return range;
}

void SlabMap::AddFree(uint64_t address, uint64_t bytes) {
  free_.emplace(address, bytes);
  sizes_.emplace(bytes, address);
  free_bytes_ += bytes;
}

void SlabMap::RemoveFree(std::map<uint64_t, uint64_t>::iterator range) {
  free_bytes_ -= range->second;
  sizes_.erase({range->second, range->first});
  free_.erase(range);
}

}  // namespace hallmark
