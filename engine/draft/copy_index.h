// SPDX-License-Identifier: Apache-2.0
// CopyIndex: finds what followed the last time a stream's newest ids occurred, as a guess of what
// follows now. One stream's own ids and nothing else. Guesses only: it changes no token. Copyable.
#ifndef HALLMARK_ENGINE_DRAFT_COPY_INDEX_H_
#define HALLMARK_ENGINE_DRAFT_COPY_INDEX_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace hallmark {

struct Copy {
  std::vector<int32_t> ids;  // what followed; empty when there is no match
  int64_t match = 0;         // ids alike before it
};

class CopyIndex {
 public:
  // Matches are told apart up to this length: of two longer ones the later wins.
  static constexpr int64_t kLongestMatch = 64;

  void Append(int32_t id);

  // What followed the earlier occurrence that shares the longest suffix with the ids appended so
  // far, `min_match` (1 .. kLongestMatch) ids at least; of equally long ones the latest. At most
  // `max_ids` ids, which run on into the copy itself where it overlaps its source. Time: the
  // earlier occurrences of the last three ids.
  Copy Find(int64_t min_match, int64_t max_ids) const;

 private:
  static constexpr int64_t kGram = 3;
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  uint64_t GramEndingAt(int64_t end) const;
  // Ids that end before `end` and before the whole alike, kLongestMatch at most.
  int64_t MatchLength(int64_t end) const;

  std::vector<int32_t> ids_;
  std::unordered_map<uint64_t, int64_t> latest_;  // gram to the end of its latest occurrence
  std::vector<int64_t> previous_;                 // per end: of the occurrence before; 0: none
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_DRAFT_COPY_INDEX_H_
