// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace hallmark {
namespace {

tl::unexpected<Error> SystemError(const std::string& what, const std::string& path) {
  return Fail(Code::kIo, what + ": " + std::strerror(errno), {.file = path});
}

// An open temporary file that is unlinked unless it was kept.
class TemporaryFile {
 public:
  static Result<TemporaryFile> Create(const std::string& path) {
    std::string name = path + ".partial.XXXXXX";
    const int descriptor = ::mkstemp(name.data());
    if (descriptor < 0) return SystemError("the file could not be created", path);
    // mkstemp makes the file private; an ordinary file follows the umask.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(descriptor, 0666 & ~mask);
    return TemporaryFile(std::move(name), descriptor);
  }

  TemporaryFile(TemporaryFile&& other) noexcept
      : name_(std::move(other.name_)), descriptor_(std::exchange(other.descriptor_, -1)) {
    other.name_.clear();
  }
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  Status Append(std::span<const std::byte> bytes, const std::string& path) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return SystemError("the file could not be written", path);
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return {};
  }

  Status KeepAs(const std::string& path) {
    // A full disk may first show at fsync or close.
    if (::fsync(descriptor_) != 0) return SystemError("the file could not be written", path);
    if (::close(std::exchange(descriptor_, -1)) != 0) {
      return SystemError("the file could not be written", path);
    }
    if (std::rename(name_.c_str(), path.c_str()) != 0) {
      return SystemError("the file could not be put in place", path);
    }
    name_.clear();
    return {};
  }

 private:
  TemporaryFile(std::string name, int descriptor)
      : name_(std::move(name)), descriptor_(descriptor) {}

  std::string name_;
  int descriptor_;
};

// The file that a write to `path` means. A rename would put a file in place of a link, a device or
// a pipe, so a link is followed and the others are refused.
Result<std::string> TargetOf(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return path;
  if (S_ISLNK(info.st_mode) && ::stat(path.c_str(), &info) != 0) {
    return SystemError("the link leads to no file", path);
  }
  if (S_ISDIR(info.st_mode)) {
    return Fail(Code::kIo, "found a folder, expected a file to write", {.file = path});
  }
  if (!S_ISREG(info.st_mode)) {
    return Fail(Code::kIo, "found a device, pipe or socket, expected a regular file or none",
                {.file = path});
  }
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  if (error) {
    return Fail(Code::kIo, "the file could not be found: " + error.message(), {.file = path});
  }
  return target.string();
}

}  // namespace

Status WriteFileAtomically(const std::string& path,
                           const std::function<Status(const ByteSink&)>& write) {
  const std::string target = TRY(TargetOf(path));
  TemporaryFile file = TRY(TemporaryFile::Create(target));
  TRY(write([&](std::span<const std::byte> bytes) { return file.Append(bytes, target); }));
  return file.KeepAs(target);
}

Status WriteFileAtomically(const std::string& path, std::string_view text) {
  return WriteFileAtomically(path, [&](const ByteSink& sink) {
    return sink(std::as_bytes(std::span(text.data(), text.size())));
  });
}

}  // namespace hallmark
