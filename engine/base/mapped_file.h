// SPDX-License-Identifier: Apache-2.0
// MappedFile: a read-only memory map of a regular file. Offsets inside need not be aligned; readers
// memcpy values out and never cast pointers.
//
// A map can fail after it was made: the file shrinks, or its medium gives an error. The reader is
// not killed, it sees zeros (map_registry.h). So whoever has read bytes asks Intact, or CheckIntact
// of the bytes alone, before anything that follows from them is told.
#ifndef HALLMARK_ENGINE_BASE_MAPPED_FILE_H_
#define HALLMARK_ENGINE_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "engine/base/map_registry.h"
#include "engine/base/result.h"

namespace hallmark {

class MappedFile {
 public:
  // Maps `path`. kNotFound if absent, kUnsupported if not a regular file (FIFO, socket, directory,
  // device), kIo otherwise. Links are followed. An empty file maps to an empty span.
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const {
    if (map_ == nullptr) return {};
    return {reinterpret_cast<const std::byte*>(map_->begin.load()), map_->size()};
  }
  const std::string& path() const { return path_; }

  // kIo with the first byte known to be lost since Open. One system call.
  Status Intact() const;

 private:
  MappedFile(std::string path, MapRecord* map) : path_(std::move(path)), map_(map) {}

  std::string path_;
  MapRecord* map_ = nullptr;  // null for an empty file
};

// The same for `bytes`, of whatever map; `path` names the file in errors. Bytes that lie in no map
// are intact. One system call.
Status CheckIntact(std::span<const std::byte> bytes, const std::string& path);

// Whether the folder has an entry of this name. A link that leads nowhere is one: who would read
// the file must be told, not served as if it were absent.
bool HasEntry(const std::string& path);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_MAPPED_FILE_H_
