// SPDX-License-Identifier: Apache-2.0
// Clause: text-exact
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <set>

#include "engine/text/bpe.h"

namespace hallmark {
namespace {

constexpr int kLetters = 3;  // pieces are over a, b, c, so that merges meet often

// Random rules: each joins two earlier tokens, no pair twice.
std::vector<MergeRule> RandomMerges() {
  std::vector<int32_t> tokens;
  for (int i = 0; i < kLetters; ++i) tokens.push_back('a' + i);
  std::vector<MergeRule> rules;
  std::set<std::pair<int32_t, int32_t>> seen;
  const int wanted = *rc::gen::inRange(0, 12);
  for (int i = 0; i < wanted; ++i) {
    const int32_t left = *rc::gen::elementOf(tokens);
    const int32_t right = *rc::gen::elementOf(tokens);
    if (!seen.insert({left, right}).second) continue;
    const int32_t result = 256 + static_cast<int32_t>(rules.size());
    rules.push_back({left, right, result});
    tokens.push_back(result);
  }
  // Ranks need not follow the order in which tokens are built.
  const int turn = rules.empty() ? 0 : *rc::gen::inRange<int>(0, static_cast<int>(rules.size()));
  std::rotate(rules.begin(), rules.begin() + turn, rules.end());
  return rules;
}

// The definition, one merge at a time.
std::vector<int32_t> MergeByDefinition(std::vector<int32_t> ids,
                                       const std::vector<MergeRule>& rules) {
  for (;;) {
    size_t best_rank = rules.size();
    size_t best_at = 0;
    for (size_t at = 0; at + 1 < ids.size(); ++at) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (rules[rank].left == ids[at] && rules[rank].right == ids[at + 1]) {
          best_rank = rank;
          best_at = at;
        }
      }
    }
    if (best_rank == rules.size()) return ids;
    ids[best_at] = rules[best_rank].result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

RC_GTEST_PROP(BpeProperty, EqualsMergingByDefinition, ()) {
  const std::vector<MergeRule> rules = RandomMerges();
  const std::string piece = *rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
  std::array<int32_t, 256> byte_ids{};
  std::iota(byte_ids.begin(), byte_ids.end(), 0);
  const Bpe bpe(byte_ids, rules, 256 + static_cast<int32_t>(rules.size()));
  Bpe::Scratch scratch;
  std::vector<int32_t> ids;
  bpe.Encode(piece, &scratch, &ids);
  RC_ASSERT(ids == MergeByDefinition({piece.begin(), piece.end()}, rules));
}

}  // namespace
}  // namespace hallmark
