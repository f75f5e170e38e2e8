// SPDX-License-Identifier: Apache-2.0
// DeviceArena: device memory for weights and buffers. Large blocks are the driver's own; small ones
// are cut from slabs, because a model has thousands of them. Every block is 256-byte aligned. A
// block of a slab may be handed out again at once: its next user comes later in the same stream.
// What goes back to the driver waits until the stream is past (CudaStream::Retire).
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_ARENA_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "engine/backend/buffer.h"
#include "engine/backend/cuda/stream.h"
#include "engine/base/result.h"

namespace hallmark {

class DeviceArena {
 public:
  static constexpr size_t kAlignment = 256;
  static constexpr size_t kSlabBytes = size_t{2} << 20;
  // The largest block that comes from a slab.
  static constexpr size_t kSmallBytes = size_t{256} << 10;

  // `stream` outlives the arena, the arena every buffer.
  explicit DeviceArena(CudaStream& stream) : stream_(stream) {}
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  // kResource when there is none. Zero bytes are an empty buffer.
  Result<Buffer> Allocate(size_t bytes);

  size_t bytes_used() const { return bytes_used_; }  // by buffers, as they asked
  size_t bytes_held() const { return bytes_held_; }  // from the driver

 private:
  // Free ranges by address; neighbours are joined.
  struct Slab {
    std::map<std::byte*, size_t> free;
  };
  static void Release(void* owner, void* data, size_t bytes);
  Result<std::byte*> TakeSmall(size_t bytes);
  void GiveSmall(std::byte* data, size_t bytes);

  CudaStream& stream_;
  std::map<std::byte*, Slab> slabs_;
  size_t bytes_used_ = 0;
  size_t bytes_held_ = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_ARENA_H_
