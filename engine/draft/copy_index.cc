// SPDX-License-Identifier: Apache-2.0
#include "engine/draft/copy_index.h"

#include <algorithm>
#include <utility>

namespace hallmark {

// 21 bits an id: equal grams have equal keys; ids beyond may collide, which costs a comparison.
uint64_t CopyIndex::GramEndingAt(int64_t end) const {
  uint64_t key = 0;
  for (int64_t i = end - kGram; i < end; ++i) {
    key = key << 21 ^ static_cast<uint32_t>(ids_[static_cast<size_t>(i)]);
  }
  return key;
}

void CopyIndex::Append(int32_t id) {
  ids_.push_back(id);
  previous_.resize(ids_.size() + 1, 0);
  // A gram joins when an id follows it: the newest one would only find itself.
  const int64_t end = size() - 1;
  if (end < kGram) return;
  int64_t& latest = latest_[GramEndingAt(end)];
  previous_[static_cast<size_t>(end)] = latest;
  latest = end;
}

int64_t CopyIndex::MatchLength(int64_t end) const {
  int64_t length = 0;
  while (length < std::min(end, kLongestMatch) &&
         ids_[static_cast<size_t>(end - 1 - length)] ==
             ids_[static_cast<size_t>(size() - 1 - length)]) {
    ++length;
  }
  return length;
}

Copy CopyIndex::Find(int64_t min_match, int64_t max_ids) const {
  int64_t best_end = 0;
  int64_t best_length = min_match - 1;
  const auto consider = [&](int64_t end) {
    const int64_t length = MatchLength(end);
    if (length <= best_length) return;
    best_end = end;
    best_length = length;
  };
  if (min_match < kGram) {
    for (int64_t end = size() - 1; end > 0 && best_length < kLongestMatch; --end) consider(end);
  } else if (size() >= kGram) {
    const auto latest = latest_.find(GramEndingAt(size()));
    int64_t end = latest == latest_.end() ? 0 : latest->second;
    for (; end > 0 && best_length < kLongestMatch; end = previous_[static_cast<size_t>(end)]) {
      consider(end);
    }
  }
  if (best_end == 0) return {};
  std::vector<int32_t> copy;
  const int64_t period = size() - best_end;
  for (int64_t i = 0; i < max_ids; ++i) {
    copy.push_back(i < period ? ids_[static_cast<size_t>(best_end + i)]
                              : copy[static_cast<size_t>(i - period)]);
  }
  return {std::move(copy), best_length};
}

}  // namespace hallmark
