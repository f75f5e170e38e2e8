// SPDX-License-Identifier: Apache-2.0
// Clause: failure-isolation
// Random histories against the plainest model there is: a list of what every 256-byte step holds.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/backend/slab_map.h"

namespace hallmark {
namespace {

constexpr uint64_t kStep = SlabMap::kStepBytes;
constexpr uint64_t kSlab = 24 * kStep;  // small, so that histories fill it
constexpr uint64_t kSlots = 6;

enum class Step { kForeign, kFree, kTaken };

struct Model {
  std::vector<Step> steps = std::vector<Step>(kSlots * kSlab / kStep, Step::kForeign);
  struct Block {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  std::vector<Block> blocks;

  void Set(uint64_t address, uint64_t bytes, Step from, Step to) {
    RC_ASSERT(address % kStep == 0u);
    for (uint64_t at = address / kStep; at < (address + bytes + kStep - 1) / kStep; ++at) {
      RC_ASSERT(steps.at(at) == from);
      steps[at] = to;
    }
  }
  uint64_t Bytes(Step what) const {
    return kStep * static_cast<uint64_t>(std::count(steps.begin(), steps.end(), what));
  }
  // The longest run of free steps within one slab.
  uint64_t Longest() const {
    uint64_t longest = 0;
    uint64_t run = 0;
    for (size_t at = 0; at < steps.size(); ++at) {
      if (at % (kSlab / kStep) == 0) run = 0;
      run = steps[at] == Step::kFree ? run + kStep : 0;
      longest = std::max(longest, run);
    }
    return longest;
  }
};

void TakeOne(SlabMap& map, Model& model) {
  const uint64_t bytes = *rc::gen::inRange<uint64_t>(1, 10 * kStep);
  const auto address = map.Take(bytes);
  RC_ASSERT(address.has_value() == (model.Longest() >= SlabMap::BlockBytes(bytes)));
  if (!address) return;
  model.Set(*address, bytes, Step::kFree, Step::kTaken);
  RC_ASSERT(*address / kSlab == (*address + bytes - 1) / kSlab);
  model.blocks.push_back({*address, bytes});
}

void GiveOne(SlabMap& map, Model& model) {
  const size_t at = *rc::gen::inRange<size_t>(0, model.blocks.size());
  std::swap(model.blocks[at], model.blocks.back());
  const Model::Block block = model.blocks.back();
  model.blocks.pop_back();
  model.Set(block.address, block.bytes, Step::kTaken, Step::kFree);
  const auto slab = map.Give(block.address, block.bytes);
  const bool last = std::none_of(
      model.blocks.begin(), model.blocks.end(),
      [&](const Model::Block& other) { return other.address / kSlab == block.address / kSlab; });
  RC_ASSERT(slab.has_value() == last);
  if (!slab) return;
  RC_ASSERT(slab->address == block.address / kSlab * kSlab);
  RC_ASSERT(slab->bytes == kSlab);
  model.Set(slab->address, slab->bytes, Step::kFree, Step::kForeign);
}

RC_GTEST_PROP(SlabMapProperty, BlocksNeverOverlapAndEveryStepIsAccountedFor, ()) {
  SlabMap map;
  Model model;
  const int length = *rc::gen::inRange(1, 120);
  for (int i = 0; i < length; ++i) {
    const int action = *rc::gen::inRange(0, 10);
    if (action == 0) {
      const uint64_t slot = *rc::gen::inRange<uint64_t>(0, kSlots);
      if (model.steps[slot * kSlab / kStep] != Step::kForeign) continue;
      map.AddSlab(slot * kSlab, kSlab);
      model.Set(slot * kSlab, kSlab, Step::kForeign, Step::kFree);
    } else if (action < 6 || model.blocks.empty()) {
      TakeOne(map, model);
    } else {
      GiveOne(map, model);
    }
    RC_ASSERT(map.free_bytes() == model.Bytes(Step::kFree));
    RC_ASSERT(map.held_bytes() == model.Bytes(Step::kFree) + model.Bytes(Step::kTaken));
    RC_ASSERT(map.largest_free_bytes() == model.Longest());
  }
  while (!model.blocks.empty()) GiveOne(map, model);
}

}  // namespace
}  // namespace hallmark
