// SPDX-License-Identifier: Apache-2.0
// SlabMap: where blocks lie in slabs, in numbers alone. It owns no memory: an arena puts its slabs
// here by address (engine/backend/cuda/arena.h), and a memory plan asks the same questions without
// any (engine/model/memory_plan.h), so that what is planned is what will be taken.
//
// A block takes whole steps of 256 bytes out of the smallest free range that holds it, the lowest
// of equals. Free neighbours of one slab are joined; ranges never reach across slabs. The same
// calls give the same places. Sizes are below 2^60 bytes.
//
// What is lost: of a page of keys and values in whole 2 MiB nothing, of smaller ones a 256th and
// the end of the last slab. States and windows that streams let go leave ranges of just their
// sizes, which the next stream's fill: no more is ever held than the most streams at once have
// taken.
#ifndef HALLMARK_ENGINE_BACKEND_SLAB_MAP_H_
#define HALLMARK_ENGINE_BACKEND_SLAB_MAP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace hallmark {

class SlabMap {
 public:
  static constexpr uint64_t kStepBytes = 256;
  // What a driver hands out without a loss (conformance/gpu/plan_test.cc): slabs are multiples.
  static constexpr uint64_t kPageBytes = uint64_t{2} << 20;
  static constexpr uint64_t kMostSlabBytes = uint64_t{128} << 20;

  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };

  static constexpr uint64_t BlockBytes(uint64_t bytes) {
    return (bytes + kStepBytes - 1) / kStepBytes * kStepBytes;
  }
  // The smallest slab for `blocks` blocks of `bytes`.
  static constexpr uint64_t SlabFor(uint64_t bytes, uint64_t blocks = 1) {
    return (BlockBytes(bytes) * blocks + kPageBytes - 1) / kPageBytes * kPageBytes;
  }

  // What scratch takes that is to hold `bytes` and may be outgrown.
  static constexpr uint64_t GrownBytes(uint64_t bytes) {
    return bytes < kPageBytes / 2 ? bytes : SlabFor(bytes);
  }

  // How many blocks of `bytes` the next slab should have room for: the fewest that waste less than
  // a 256th of it, such as one page of keys and values of 8 MiB or two states of 3 MiB; where there
  // are none, as many as fit into a 16th of what is held. At least one; otherwise no slab is larger
  // than that, or than 128 MiB. A model's blocks come in few sizes, so slabs of a whole number of
  // them end without a remainder, and a small model takes no large slab.
  uint64_t BlocksPerSlab(uint64_t bytes) const;

  // `bytes` at `address`, free. Overlaps no other slab.
  void AddSlab(uint64_t address, uint64_t bytes);
  // bytes > 0. Absent when no free range holds them: then a slab is wanted.
  std::optional<uint64_t> Take(uint64_t bytes);
  // Gives back what Take gave. The slab that has no block left, if it is so: it is forgotten.
  std::optional<Range> Give(uint64_t address, uint64_t bytes);

  bool empty() const { return slabs_.empty(); }
  uint64_t slabs() const { return slabs_.size(); }
  uint64_t held_bytes() const { return held_bytes_; }  // all slabs
  uint64_t free_bytes() const { return free_bytes_; }  // in them
  uint64_t largest_free_bytes() const { return sizes_.empty() ? 0 : sizes_.rbegin()->first; }

 private:
  void AddFree(uint64_t address, uint64_t bytes);
  void RemoveFree(std::map<uint64_t, uint64_t>::iterator range);

  std::map<uint64_t, uint64_t> slabs_;             // bytes by address
  std::map<uint64_t, uint64_t> free_;              // bytes by address
  std::set<std::pair<uint64_t, uint64_t>> sizes_;  // of the same: bytes, address
  uint64_t held_bytes_ = 0;
  uint64_t free_bytes_ = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_SLAB_MAP_H_
