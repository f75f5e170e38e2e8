// SPDX-License-Identifier: Apache-2.0
// MappedFile: a read-only memory map of a regular file. Offsets inside need not be aligned; readers
// memcpy values out and never cast pointers.
#ifndef HALLMARK_ENGINE_BASE_MAPPED_FILE_H_
#define HALLMARK_ENGINE_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "engine/base/result.h"

namespace hallmark {

class MappedFile {
 public:
  // Maps `path`. kNotFound if absent, kUnsupported if not a regular file (FIFO, directory, device),
  // kIo otherwise. An empty file maps to an empty span.
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Whether the folder has an entry of this name. A link that leads nowhere is one: who would read
// the file must be told, not served as if it were absent.
bool HasEntry(const std::string& path);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_MAPPED_FILE_H_
