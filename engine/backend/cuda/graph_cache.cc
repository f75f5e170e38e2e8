// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/graph_cache.h"

namespace hallmark {

void GraphCache::Drop(Entry& entry) {
  if (entry.graph == nullptr) return;
  stream_.Retire(entry.graph);
  entry.graph = nullptr;
  --graphs_;
}

void GraphCache::Clear() {
  for (auto& [key, entry] : entries_) Drop(entry);
  entries_.clear();
}

GraphCache::Entries::iterator GraphCache::Oldest(bool with_graph) {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (with_graph && entry->second.graph == nullptr) continue;
    if (oldest == entries_.end() || entry->second.last_use < oldest->second.last_use) {
      oldest = entry;
    }
  }
  return oldest;
}

Status GraphCache::Run(const Key& key, int64_t scratch_moves, const std::function<Status()>& work) {
  if (!enabled_) return work();
  const auto known = entries_.find(key);
  if (known == entries_.end()) {
    // Scratch grows while it is called, so that nothing is left to grow when it is recorded.
    if (entries_.size() >= kMaxKeys) {
      const auto oldest = Oldest(false);
      Drop(oldest->second);
      entries_.erase(oldest);
    }
    entries_[key].last_use = ++uses_;
    return work();
  }
  Entry& entry = known->second;
  entry.last_use = ++uses_;
  if (entry.graph != nullptr && entry.scratch_moves != scratch_moves) Drop(entry);
  if (entry.graph == nullptr) {
    if (graphs_ >= kMaxGraphs) Drop(Oldest(true)->second);
    auto graph = stream_.Record(work);
    if (!graph.has_value()) {
      if (stream_.lost()) return Fail(std::move(graph).error());
      return work();  // the work as it is needs what no graph gives, or memory for one is short
    }
    entry.graph = *graph;
    entry.scratch_moves = scratch_moves;
    ++graphs_;
  }
  ++replays_;
  return stream_.Replay(entry.graph);
}

}  // namespace hallmark
