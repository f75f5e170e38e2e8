// SPDX-License-Identifier: Apache-2.0
#include "engine/base/map_registry.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace hallmark {
namespace {

// Records are used again, never freed: the handler walks the list at any time, on any thread.
std::atomic<MapRecord*> g_records{nullptr};
std::mutex g_mutex;  // of AddMap and RemoveMap; the handler takes none
struct sigaction g_previous {};
uintptr_t g_page = 4096;

const MapRecord* Holding(uintptr_t address) {
  for (const MapRecord* record = g_records; record != nullptr; record = record->next) {
    if (address >= record->begin && address < record->end) return record;
  }
  return nullptr;
}

// What the signal would have met without us.
void PassOn(int signal, siginfo_t* info, void* context) {
  if ((g_previous.sa_flags & SA_SIGINFO) != 0) {
    g_previous.sa_sigaction(signal, info, context);
  } else if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) {
    g_previous.sa_handler(signal);
  } else {
    // The instruction runs again and dies of the signal; one that was sent is sent again.
    ::sigaction(SIGBUS, &g_previous, nullptr);
    if (info->si_code <= 0) ::raise(signal);
  }
}

// Async-signal-safe: atomics, and mmap, which is a plain system call. The whole rest of the map is
// replaced, so that a large one faults once and not once a page.
bool ReplaceWithZeros(uintptr_t address) {
  auto* record = const_cast<MapRecord*>(Holding(address));
  if (record == nullptr) return false;
  const uint64_t offset = address - record->begin;
  uint64_t known = record->lost;
  while (offset < known && !record->lost.compare_exchange_weak(known, offset)) {
  }
  const uintptr_t page = address / g_page * g_page;
  return ::mmap(reinterpret_cast<void*>(page), record->end - page, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  // A positive code is the system's own; of a signal that was sent the address means nothing.
  const bool done =
      info->si_code > 0 && ReplaceWithZeros(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = error;
  if (!done) PassOn(signal, info, context);
}

void InstallHandler() {
  g_page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = &OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &g_previous);
}

MapRecord* FreeRecord() {
  for (MapRecord* record = g_records; record != nullptr; record = record->next) {
    if (record->end == 0) return record;
  }
  auto* record = new MapRecord;
  record->next = g_records.load();
  g_records = record;
  return record;
}

}  // namespace

MapRecord* AddMap(int file, const void* data, size_t size) {
  static std::once_flag once;
  std::call_once(once, &InstallHandler);
  const std::lock_guard lock(g_mutex);
  MapRecord* record = FreeRecord();
  record->file = file;
  record->lost = MapRecord::kNone;
  record->begin = reinterpret_cast<uintptr_t>(data);
  record->end = reinterpret_cast<uintptr_t>(data) + size;  // last: from here on it is in use
  return record;
}

void RemoveMap(MapRecord* record) {
  const std::lock_guard lock(g_mutex);
  void* data = reinterpret_cast<void*>(record->begin.load());
  const size_t size = record->size();
  ::close(record->file);
  record->end = 0;
  ::munmap(data, size);
}

std::optional<uint64_t> FirstLostByte(const MapRecord& record) {
  uint64_t first = record.lost;
  struct stat info {};
  const bool known = ::fstat(record.file, &info) == 0;
  const uint64_t now = known ? static_cast<uint64_t>(info.st_size) : 0;
  if (now < record.size()) first = std::min(first, now);
  if (first == MapRecord::kNone) return std::nullopt;
  return first;
}

const MapRecord* FindMap(const void* address) {
  return Holding(reinterpret_cast<uintptr_t>(address));
}

}  // namespace hallmark
