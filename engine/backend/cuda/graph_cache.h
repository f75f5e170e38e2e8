// SPDX-License-Identifier: Apache-2.0
// GraphCache: work that comes again, as CUDA graphs. A key that is seen for the second time is
// recorded, and replayed from then on (clause graph-equals-eager). A graph holds addresses: it is
// good only while the scratch that it was recorded with lies where it lay. Of one stream.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_GRAPH_CACHE_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_GRAPH_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "engine/backend/cuda/stream.h"
#include "engine/base/result.h"

namespace hallmark {

class GraphCache {
 public:
  using Key = std::vector<uint64_t>;
  // Graphs take device memory, which the plan counts for so many; keys take the host's.
  static constexpr size_t kMaxGraphs = 32;
  static constexpr size_t kMaxKeys = 256;

  // `stream` outlives the cache.
  explicit GraphCache(CudaStream& stream) : stream_(stream) {}
  ~GraphCache() { Clear(); }
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // Does what `work` asks for: by calling it, or by a graph of an earlier call with this key.
  // `scratch_moves` counts how often the memory that `work` uses has become another.
  Status Run(const Key& key, int64_t scratch_moves, const std::function<Status()>& work);

  void set_enabled(bool enabled) { enabled_ = enabled; }
  int64_t replays() const { return replays_; }
  size_t graphs() const { return graphs_; }

 private:
  struct Entry {
    int64_t last_use = 0;
    int64_t scratch_moves = 0;
    cudaGraphExec_t graph = nullptr;
  };
  using Entries = std::map<Key, Entry>;
  void Drop(Entry& entry);
  void Clear();
  // The entry used longest ago, of those with a graph or of all.
  Entries::iterator Oldest(bool with_graph);

  CudaStream& stream_;
  bool enabled_ = true;
  int64_t uses_ = 0;
  int64_t replays_ = 0;
  size_t graphs_ = 0;
  Entries entries_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_GRAPH_CACHE_H_
