// SPDX-License-Identifier: Apache-2.0
#include "engine/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace hallmark {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Status Lost(const std::string& path, uint64_t byte) {
  return Fail(Code::kIo, "the file became shorter, or could not be read, while it was open",
              {.file = path, .byte = byte});
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO for reading must not wait for a writer. O_NOCTTY: nor may opening a
  // terminal make it ours.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) {
    // ENXIO: a socket, or a device without a driver.
    const Code code = errno == ENOENT || errno == ENOTDIR ? Code::kNotFound
                      : errno == ENXIO                    ? Code::kUnsupported
                                                          : Code::kIo;
    return Fail(code, std::string("cannot open the file: ") + std::strerror(errno), {.file = path});
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    return Fail(Code::kIo, std::string("cannot read the file's size: ") + std::strerror(errno),
                {.file = path});
  }
  if (!S_ISREG(info.st_mode)) {
    return Fail(Code::kUnsupported, "expected a regular file", {.file = path});
  }
  const size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) return MappedFile(path, nullptr);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    return Fail(Code::kIo, std::string("cannot map the file: ") + std::strerror(errno),
                {.file = path});
  }
  return MappedFile(path, AddMap(file.Release(), data, size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), map_(std::exchange(other.map_, nullptr)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(map_, other.map_);
  return *this;
}

MappedFile::~MappedFile() {
  if (map_ != nullptr) RemoveMap(map_);
}

Status MappedFile::Intact() const {
  const auto lost = map_ == nullptr ? std::nullopt : FirstLostByte(*map_);
  if (!lost) return {};
  return Lost(path_, *lost);
}

Status CheckIntact(std::span<const std::byte> bytes, const std::string& path) {
  const MapRecord* map = bytes.empty() ? nullptr : FindMap(bytes.data());
  const auto lost = map == nullptr ? std::nullopt : FirstLostByte(*map);
  if (!lost) return {};
  const uint64_t end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size() - map->begin;
  // Zeros begin with the page of the read that failed.
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const bool shrank = *lost != map->lost;
  if (end <= (shrank ? *lost : *lost / page * page)) return {};
  return Lost(path, *lost);
}

bool HasEntry(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

}  // namespace hallmark
