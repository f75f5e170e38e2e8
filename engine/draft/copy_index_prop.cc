// SPDX-License-Identifier: Apache-2.0
// Clause: copy-gate-neutral
// CopyIndex against a search that looks at every place.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "engine/draft/copy_index.h"

namespace hallmark {
namespace {

std::vector<int32_t> SearchEverywhere(const std::vector<int32_t>& ids, int64_t min_match,
                                      int64_t max_ids) {
  const int64_t size = static_cast<int64_t>(ids.size());
  int64_t best_end = 0;
  int64_t best_length = 0;
  for (int64_t end = 1; end < size; ++end) {
    int64_t length = 0;
    while (length < end && length < CopyIndex::kLongestMatch &&
           ids[end - 1 - length] == ids[size - 1 - length]) {
      ++length;
    }
    if (length < min_match || length < best_length) continue;
    best_length = length;
    best_end = end;
  }
  std::vector<int32_t> found;
  if (best_end == 0) return found;
  std::vector<int32_t> text = ids;
  for (int64_t i = 0; i < max_ids; ++i) {
    found.push_back(text[static_cast<size_t>(best_end + i)]);
    text.push_back(found.back());
  }
  return found;
}

RC_GTEST_PROP(CopyIndex, FindsWhatASearchEverywhereFinds, ()) {
  // Few letters, so that matches of every length occur; ids that need all 32 bits among them.
  const int32_t letters = *rc::gen::inRange(1, 5);
  const auto letter = rc::gen::map(rc::gen::inRange(0, letters),
                                   [](int32_t n) { return n % 2 == 0 ? n : 0x7FFFFFF0 + n; });
  const auto ids = *rc::gen::resize(200, rc::gen::container<std::vector<int32_t>>(letter));
  const int64_t min_match = *rc::gen::weightedOneOf<int64_t>(
      {{9, rc::gen::inRange<int64_t>(1, 12)},
       {1, rc::gen::inRange<int64_t>(12, CopyIndex::kLongestMatch + 1)}});
  const int64_t max_ids = *rc::gen::inRange<int64_t>(1, 20);
  CopyIndex index;
  for (const int32_t id : ids) {
    index.Append(id);
  }
  RC_ASSERT(index.Find(min_match, max_ids).ids == SearchEverywhere(ids, min_match, max_ids));
  CopyIndex fork = index;
  fork.Append(1);
  RC_ASSERT(index.Find(min_match, max_ids).ids == SearchEverywhere(ids, min_match, max_ids));
}

TEST(CopyIndex, LongestWinsThenTheLatest) {
  CopyIndex index;
  for (const int32_t id : {1, 2, 3, 7, 9, 2, 3, 8, 5, 2, 3, 6, 1, 2, 3}) index.Append(id);
  EXPECT_EQ(index.Find(2, 1).ids, std::vector<int32_t>({7}));  // 1 2 3 is longer than 2 3
  EXPECT_EQ(index.Find(2, 1).match, 3);
  index.Append(4);
  index.Append(2);
  index.Append(3);
  EXPECT_EQ(index.Find(2, 1).ids, std::vector<int32_t>({4}));  // the latest 2 3
  EXPECT_TRUE(index.Find(3, 1).ids.empty());
}

TEST(CopyIndex, AnOverlappingCopyGoesOn) {
  CopyIndex index;
  for (const int32_t id : {5, 6, 5, 6, 5}) index.Append(id);
  EXPECT_EQ(index.Find(3, 5).ids, std::vector<int32_t>({6, 5, 6, 5, 6}));
}

TEST(CopyIndex, AMillionEqualIdsTakeLinearTime) {
  CopyIndex index;
  for (int i = 0; i < 1000000; ++i) index.Append(7);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(index.Find(5, 15).ids.size(), 15u);
}

}  // namespace
}  // namespace hallmark
