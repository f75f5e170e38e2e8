// SPDX-License-Identifier: Apache-2.0
// KeptStates: states that streams left behind, found again by their ids. Bounded in bytes. A state
// is lent for forking only and never changes while it is here (clause resumed-equals-fresh). Not
// thread-safe.
#ifndef HALLMARK_ENGINE_RUN_KEPT_STATES_H_
#define HALLMARK_ENGINE_RUN_KEPT_STATES_H_

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "engine/run/target.h"

namespace hallmark {

class KeptStates {
 public:
  // 0 bytes: nothing is ever kept.
  explicit KeptStates(size_t max_bytes) : max_bytes_(max_bytes) {}

  // The state of the most ids among those whose ids begin `prompt` and leave at least one of it
  // over; null when there is none. Valid until the next call. Counts as a use.
  const TargetState* Find(std::span<const int32_t> prompt);

  // Keeps a state that `ids` were fed to, and makes room for it: first goes what another kept state
  // extends, then the longest unused. False when it is larger than the whole bound. Ids that are
  // here already count as a use of the state here.
  bool Keep(std::vector<int32_t> ids, std::unique_ptr<TargetState> state);

  // Lets one go by the same rule; false when there is none.
  bool EvictOne();

  size_t bytes() const { return bytes_; }  // shared pages counted at every holder
  size_t max_bytes() const { return max_bytes_; }
  size_t count() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<int32_t> ids;
    std::unique_ptr<TargetState> state;
    size_t bytes = 0;
  };

  size_t max_bytes_;
  size_t bytes_ = 0;
  std::list<Entry> entries_;  // the latest used first
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_RUN_KEPT_STATES_H_
