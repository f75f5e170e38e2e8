// SPDX-License-Identifier: Apache-2.0
#include "engine/text/bpe.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "engine/base/check.h"

namespace hallmark {
namespace {

constexpr size_t kLimit = std::numeric_limits<int32_t>::max();
constexpr int32_t kNone = -1;

}  // namespace

Bpe::Bpe(const std::array<int32_t, 256>& byte_ids, std::vector<MergeRule> merges,
         int32_t vocab_size)
    : byte_ids_(byte_ids), merges_(std::move(merges)) {
  CHECK(vocab_size >= 0 && merges_.size() < kLimit);
  const auto is_token = [vocab_size](int32_t id) { return id >= 0 && id < vocab_size; };
  for (const int32_t id : byte_ids_) CHECK(is_token(id));
  // A rule is looked up once for each pair of neighbours, so rules stand in rows by left token: one
  // index and a short search in one row, no hashing and the same order everywhere.
  row_.assign(static_cast<size_t>(vocab_size) + 1, 0);
  for (const MergeRule& rule : merges_) {
    CHECK(is_token(rule.left) && is_token(rule.right) && is_token(rule.result));
    ++row_[rule.left + 1];
  }
  for (size_t i = 1; i < row_.size(); ++i) row_[i] += row_[i - 1];
  candidates_.resize(merges_.size());
  std::vector<uint32_t> filled = row_;
  for (size_t rank = 0; rank < merges_.size(); ++rank) {
    const MergeRule& rule = merges_[rank];
    candidates_[filled[rule.left]++] = {rule.right, static_cast<int32_t>(rank)};
  }
  for (size_t left = 0; left + 1 < row_.size(); ++left) {
    const auto begin = candidates_.begin() + row_[left];
    const auto end = candidates_.begin() + row_[left + 1];
    std::sort(begin, end, [](const Candidate& a, const Candidate& b) { return a.right < b.right; });
    CHECK(std::adjacent_find(begin, end, [](const Candidate& a, const Candidate& b) {
            return a.right == b.right;
          }) == end);
  }
}

int32_t Bpe::RankOf(int32_t left, int32_t right) const {
  const auto end = candidates_.begin() + row_[left + 1];
  const auto at = std::lower_bound(
      candidates_.begin() + row_[left], end, right,
      [](const Candidate& candidate, int32_t value) { return candidate.right < value; });
  return at != end && at->right == right ? at->rank : kNone;
}

void Bpe::Encode(std::string_view piece, Scratch* scratch, std::vector<int32_t>* ids) const {
  CHECK(piece.size() < kLimit);
  auto& symbols = scratch->symbols_;
  auto& queue = scratch->queue_;
  symbols.clear();
  queue.clear();
  const int32_t count = static_cast<int32_t>(piece.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols.push_back(
        {byte_ids_[static_cast<uint8_t>(piece[i])], i - 1, i + 1 < count ? i + 1 : kNone});
  }
  const auto entry_at = [&](int32_t position) -> uint64_t {
    const int32_t rank = RankOf(symbols[position].id, symbols[symbols[position].next].id);
    if (rank == kNone) return std::numeric_limits<uint64_t>::max();
    return (static_cast<uint64_t>(rank) << 32) | static_cast<uint32_t>(position);
  };
  // Every merge pushes at most two entries and removes one symbol: at most 3n entries in all.
  const auto push = [&](int32_t position) {
    const uint64_t entry = entry_at(position);
    if (entry == std::numeric_limits<uint64_t>::max()) return;
    queue.push_back(entry);
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  for (int32_t i = 0; i + 1 < count; ++i) {
    const uint64_t entry = entry_at(i);
    if (entry != std::numeric_limits<uint64_t>::max()) queue.push_back(entry);
  }
  // The smallest entry is the lowest rank and, among equals, the leftmost position.
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const uint64_t entry = queue.back();
    queue.pop_back();
    const MergeRule& rule = merges_[entry >> 32];
    const int32_t position = static_cast<int32_t>(entry & 0xFFFFFFFFu);
    auto& symbol = symbols[position];
    // Entries are not removed when a neighbour merges away; a stale one no longer finds its pair.
    if (symbol.id != rule.left || symbol.next == kNone) continue;
    auto& right = symbols[symbol.next];
    if (right.id != rule.right) continue;
    symbol.id = rule.result;
    right.id = kNone;
    symbol.next = right.next;
    if (symbol.next != kNone) {
      symbols[symbol.next].previous = position;
      push(position);
    }
    if (symbol.previous != kNone) push(symbol.previous);
  }
  for (int32_t at = count > 0 ? 0 : kNone; at != kNone; at = symbols[at].next) {
    ids->push_back(symbols[at].id);
  }
}

}  // namespace hallmark
