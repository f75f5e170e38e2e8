// SPDX-License-Identifier: Apache-2.0
#include "engine/run/kept_states.h"

#include <algorithm>
#include <utility>

namespace hallmark {
namespace {

bool Begins(std::span<const int32_t> ids, std::span<const int32_t> longer) {
  return ids.size() < longer.size() && std::equal(ids.begin(), ids.end(), longer.begin());
}

}  // namespace

const TargetState* KeptStates::Find(std::span<const int32_t> prompt) {
  auto best = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!Begins(entry->ids, prompt)) continue;
    if (best == entries_.end() || entry->ids.size() > best->ids.size()) best = entry;
  }
  if (best == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, best);
  return best->state.get();
}

bool KeptStates::Keep(std::vector<int32_t> ids, std::unique_ptr<TargetState> state) {
  const auto same = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const Entry& entry) { return entry.ids == ids; });
  if (same != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, same);
    return true;
  }
  const size_t size = state->bytes() + ids.size() * sizeof(int32_t);
  if (size > max_bytes_) return false;
  while (bytes_ + size > max_bytes_) EvictOne();
  bytes_ += size;
  entries_.push_front({std::move(ids), std::move(state), size});
  return true;
}

bool KeptStates::EvictOne() {
  if (entries_.empty()) return false;
  auto victim = std::prev(entries_.end());
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    const bool extended = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& other) {
      return Begins(entry->ids, other.ids);
    });
    if (!extended) continue;
    victim = std::prev(entry.base());
    break;
  }
  bytes_ -= victim->bytes;
  entries_.erase(victim);
  return true;
}

}  // namespace hallmark
