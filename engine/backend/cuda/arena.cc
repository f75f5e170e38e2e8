// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/arena.h"

#include <string>

#include "engine/base/check.h"

namespace hallmark {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 60;

uint64_t Address(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

}  // namespace

DeviceArena::~DeviceArena() { CHECK(bytes_used_ == 0 && slabs_.empty()); }

Result<Buffer> DeviceArena::Allocate(size_t bytes) {
  if (bytes == 0) return Buffer();
  if (bytes >= kMostBytes) {
    return Fail(Code::kResource, "no device memory for " + std::to_string(bytes) + " bytes");
  }
  TRY(stream_.Usable());  // a graph would go on using what its work let go
  std::optional<uint64_t> address = slabs_.Take(bytes);
  if (!address) {
    TRY(AddSlab(bytes));
    address = slabs_.Take(bytes);
  }
  bytes_used_ += bytes;
  return Buffer(reinterpret_cast<void*>(static_cast<uintptr_t>(*address)), bytes, this, &Release);
}

void DeviceArena::Release(void* owner, void* data, size_t bytes) {
  DeviceArena& arena = *static_cast<DeviceArena*>(owner);
  arena.bytes_used_ -= bytes;
  const auto slab = arena.slabs_.Give(Address(data), bytes);
  if (!slab) return;
  arena.retired_bytes_ = arena.RetiredBytes() + slab->bytes;
  arena.retired_generation_ = arena.stream_.generation();
  arena.stream_.Retire(reinterpret_cast<void*>(static_cast<uintptr_t>(slab->address)));
}

uint64_t DeviceArena::RetiredBytes() const {
  return stream_.generation() == retired_generation_ ? retired_bytes_ : 0;
}

// For a block of `bytes`.
Status DeviceArena::AddSlab(uint64_t bytes) {
  for (uint64_t blocks = slabs_.BlocksPerSlab(bytes);; blocks /= 2) {
    const uint64_t slab = SlabMap::SlabFor(bytes, blocks);
    const auto memory = TakeSlab(slab);
    if (memory.has_value()) {
      slabs_.AddSlab(Address(*memory), slab);
      return {};
    }
    if (memory.error().code != Code::kResource || blocks == 1) return Fail(memory.error());
  }
}

Result<void*> DeviceArena::TakeSlab(uint64_t bytes) {
  if (limit_ == 0) return stream_.Allocate(bytes);
  if (bytes_held() + bytes > limit_) {
    return Fail(Code::kResource, std::to_string(limit_) + " bytes of device memory are allowed, " +
                                     std::to_string(bytes_held()) + " are taken: expected room " +
                                     "for " + std::to_string(bytes) + " more");
  }
  // Not even for a moment more than the limit.
  if (bytes_held() + RetiredBytes() + bytes > limit_) TRY(stream_.Synchronize());
  return stream_.Allocate(bytes);
}

}  // namespace hallmark
