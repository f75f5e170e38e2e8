// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/arena.h"

#include <iterator>
#include <limits>
#include <string>

#include "engine/base/check.h"

namespace hallmark {
namespace {

size_t Aligned(size_t bytes) {
  return (bytes + DeviceArena::kAlignment - 1) / DeviceArena::kAlignment * DeviceArena::kAlignment;
}

}  // namespace

DeviceArena::~DeviceArena() { CHECK(bytes_used_ == 0 && slabs_.empty()); }

Result<Buffer> DeviceArena::Allocate(size_t bytes) {
  if (bytes == 0) return Buffer();
  if (bytes > std::numeric_limits<size_t>::max() - kAlignment) {
    return Fail(Code::kResource, "no device memory for " + std::to_string(bytes) + " bytes");
  }
  const size_t taken = Aligned(bytes);
  void* data = nullptr;
  if (taken <= kSmallBytes) {
    data = TRY(TakeSmall(taken));
  } else {
    data = TRY(stream_.Allocate(taken));
    bytes_held_ += taken;
  }
  bytes_used_ += bytes;
  return Buffer(data, bytes, this, &Release);
}

void DeviceArena::Release(void* owner, void* data, size_t bytes) {
  DeviceArena& arena = *static_cast<DeviceArena*>(owner);
  const size_t taken = Aligned(bytes);
  arena.bytes_used_ -= bytes;
  if (taken <= kSmallBytes) {
    arena.GiveSmall(static_cast<std::byte*>(data), taken);
    return;
  }
  arena.bytes_held_ -= taken;
  arena.stream_.Retire(data);
}

Result<std::byte*> DeviceArena::TakeSmall(size_t bytes) {
  for (auto& [base, slab] : slabs_) {
    for (auto range = slab.free.begin(); range != slab.free.end(); ++range) {
      const auto [start, size] = *range;
      if (size < bytes) continue;
      slab.free.erase(range);
      if (size > bytes) slab.free.emplace(start + bytes, size - bytes);
      return start;
    }
  }
  std::byte* base = static_cast<std::byte*>(TRY(stream_.Allocate(kSlabBytes)));
  bytes_held_ += kSlabBytes;
  slabs_[base].free.emplace(base + bytes, kSlabBytes - bytes);
  return base;
}

void DeviceArena::GiveSmall(std::byte* data, size_t bytes) {
  const auto entry = std::prev(slabs_.upper_bound(data));
  auto& free = entry->second.free;
  auto range = free.emplace(data, bytes).first;
  const auto next = std::next(range);
  if (next != free.end() && range->first + range->second == next->first) {
    range->second += next->second;
    free.erase(next);
  }
  if (range != free.begin()) {
    const auto before = std::prev(range);
    if (before->first + before->second == range->first) {
      before->second += range->second;
      free.erase(range);
      range = before;
    }
  }
  if (range->second < kSlabBytes) return;
  bytes_held_ -= kSlabBytes;
  stream_.Retire(static_cast<void*>(entry->first));
  slabs_.erase(entry);
}

}  // namespace hallmark
