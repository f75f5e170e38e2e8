// SPDX-License-Identifier: Apache-2.0
// ShardReader: the bytes of files by offset, through reads and not through a map: a read leaves no
// pages in the process, and says when a file has become shorter. Thread-safe once files are open.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_SHARD_READER_H_
#define HALLMARK_CONFORMANCE_VALIDATE_SHARD_READER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "engine/base/result.h"

namespace hallmark {

class ShardReader {
 public:
  ShardReader() = default;
  ShardReader(const ShardReader&) = delete;
  ShardReader& operator=(const ShardReader&) = delete;
  ~ShardReader();

  // Opens a file if it is not open yet; kNotFound or kIo.
  Status Open(const std::string& path);
  // Bytes of a file that is open, as it is now; kIo.
  Result<uint64_t> Size(const std::string& path) const;
  // Fills `out` from `offset` of a file that is open; kIo with the byte where reading ended.
  Status Read(const std::string& path, uint64_t offset, std::span<std::byte> out) const;

 private:
  std::map<std::string, int> files_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_SHARD_READER_H_
