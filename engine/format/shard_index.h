// SPDX-License-Identifier: Apache-2.0
// ShardIndex: model.safetensors.index.json, the authority on which file holds which tensor. Only
// the document itself: whether the files agree is checkpoint.h's task. Clause: format-reject.
#ifndef HALLMARK_ENGINE_FORMAT_SHARD_INDEX_H_
#define HALLMARK_ENGINE_FORMAT_SHARD_INDEX_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/result.h"

namespace hallmark {

struct ShardIndex {
  std::string file;                               // the index's path
  std::map<std::string, std::string> weight_map;  // tensor to file name in the same folder
  std::optional<uint64_t> total_size;             // bytes of all tensors

  // The files, each once, in the order of their names.
  std::vector<std::string> Files() const;
  // Where the index speaks of a tensor.
  Locator At(const std::string& tensor) const;
};

// An index read entry by entry, for those who want every fault and not the first alone.
struct ShardIndexReading {
  ShardIndex index;           // without the entries at fault
  std::vector<Error> faults;  // in the order of the reading
};
ShardIndexReading ReadShardIndex(const Json& document, const std::string& file);

// The index, or the first of its faults. kMalformed with a pointer: no or an empty weight_map, a
// file that is no plain name ending in .safetensors (a separator of either kind, "..", a control
// character), a negative total_size.
Result<ShardIndex> ShardIndexFromJson(const Json& document, const std::string& file);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_SHARD_INDEX_H_
