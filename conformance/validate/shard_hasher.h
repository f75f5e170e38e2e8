// SPDX-License-Identifier: Apache-2.0
// ShardHasher: SHA-256 of whole files out of the pieces that somebody else reads, so that no byte
// is read twice. Pieces come file by file and in the order of their bytes; what lies between them,
// a shard's header for one, is read here. Not thread-safe.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_SHARD_HASHER_H_
#define HALLMARK_CONFORMANCE_VALIDATE_SHARD_HASHER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "conformance/validate/shard_reader.h"
#include "engine/base/result.h"
#include "engine/base/sha256.h"

namespace hallmark {

class ShardHasher {
 public:
  // `reader` outlives it, and has every file open.
  explicit ShardHasher(const ShardReader* reader) : reader_(reader) {}

  // The bytes of `path` from `offset`.
  Status Add(const std::string& path, uint64_t offset, std::span<const std::byte> bytes);
  // To the end of the file under way. Any other file may follow.
  Status EndFile();
  // By path, of the files that have ended.
  const std::map<std::string, std::string>& digests() const { return digests_; }

 private:
  Status ReadUpTo(uint64_t offset);

  const ShardReader* reader_;
  std::string path_;  // under way; empty: none
  uint64_t at_ = 0;   // bytes of it hashed so far
  Sha256 hash_;
  std::map<std::string, std::string> digests_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_SHARD_HASHER_H_
