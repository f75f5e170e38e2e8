// SPDX-License-Identifier: Apache-2.0
// MapRecord: one live memory map of a file, known to the process's SIGBUS handler. The system sends
// SIGBUS to whoever reads a page that the file no longer has, or that its medium could not give.
// Inside one of these maps the handler puts zeros in place of the page and of all that follow it in
// the map, records the offset, and the reader goes on; elsewhere it hands the signal to whoever
// handled it before. Not for reading files: that is mapped_file.h. Thread-safe.
#ifndef HALLMARK_ENGINE_BASE_MAP_REGISTRY_H_
#define HALLMARK_ENGINE_BASE_MAP_REGISTRY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hallmark {

struct MapRecord {
  static constexpr uint64_t kNone = UINT64_MAX;

  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};      // 0: the record is free
  std::atomic<uint64_t> lost{kNone};  // offset of the first read that failed
  std::atomic<int> file{-1};          // descriptor of the file
  std::atomic<MapRecord*> next{nullptr};

  size_t size() const { return end - begin; }
};

// Takes over map and descriptor. Installs the handler when it is the first.
MapRecord* AddMap(int file, const void* data, size_t size);
// Unmaps and closes. Nobody may read the map any more.
void RemoveMap(MapRecord* record);

// Offset in the file of the first byte that is known to be lost: the file became shorter than the
// map, or a read of the map failed. Nullopt when there is none.
std::optional<uint64_t> FirstLostByte(const MapRecord& record);
// The record whose map holds `address`; null when none does.
const MapRecord* FindMap(const void* address);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_MAP_REGISTRY_H_
