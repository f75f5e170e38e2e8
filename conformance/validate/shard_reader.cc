// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/shard_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/check.h"

namespace hallmark {

ShardReader::~ShardReader() {
  for (const auto& [path, file] : files_) close(file);
}

Status ShardReader::Open(const std::string& path) {
  if (files_.contains(path)) return {};
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    const int cause = errno;
    return Fail(cause == ENOENT ? Code::kNotFound : Code::kIo,
                std::string("the file cannot be opened: ") + std::strerror(cause), {.file = path});
  }
  posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
  files_[path] = file;
  return {};
}

Result<uint64_t> ShardReader::Size(const std::string& path) const {
  const auto found = files_.find(path);
  CHECK(found != files_.end());
  struct stat info {};
  if (fstat(found->second, &info) == 0) return static_cast<uint64_t>(info.st_size);
  return Fail(Code::kIo, std::string("the file's size cannot be read: ") + std::strerror(errno),
              {.file = path});
}

Status ShardReader::Read(const std::string& path, uint64_t offset, std::span<std::byte> out) const {
  const auto found = files_.find(path);
  CHECK(found != files_.end());
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = pread(found->second, out.data() + done, out.size() - done,
                              static_cast<off_t>(offset + done));
    if (got > 0) {
      done += static_cast<size_t>(got);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    const std::string why = got == 0 ? "it ends here" : std::strerror(errno);
    return Fail(Code::kIo, "the file cannot be read on: " + why,
                {.file = path, .byte = offset + done});
  }
  return {};
}

}  // namespace hallmark
