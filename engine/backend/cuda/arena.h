// SPDX-License-Identifier: Apache-2.0
// DeviceArena: device memory for weights and buffers. Blocks are cut from slabs of the arena's own
// in steps of 256 bytes (slab_map.h), because the driver's own steps depend on sizes and on what
// was asked for before: what the device has taken is then the sum of the slabs, which a plan can
// count. Every block is 256-byte aligned.
//
// A block that was given back may be handed out again at once: everything that touches it is asked
// for on the one stream of the arena, the new user's work after the old one's. Only the driver
// knows nothing of that order: a slab without blocks goes back to it once the stream is past
// (CudaStream::Retire).
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_ARENA_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_ARENA_H_

#include <cstddef>
#include <cstdint>

#include "engine/backend/buffer.h"
#include "engine/backend/cuda/stream.h"
#include "engine/backend/slab_map.h"
#include "engine/base/result.h"

namespace hallmark {

class DeviceArena {
 public:
  static constexpr size_t kAlignment = SlabMap::kStepBytes;

  // `stream` outlives the arena, the arena every buffer.
  explicit DeviceArena(CudaStream& stream) : stream_(stream) {}
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  // The most that may be taken from the device; 0: what it has. Before the first Allocate beyond
  // it.
  void set_limit(uint64_t bytes) { limit_ = bytes; }

  // kResource when there is none, or the limit allows none. A slab that cannot be had is asked for
  // again with room for half as many blocks, at last for this one alone. Zero bytes are an empty
  // buffer.
  Result<Buffer> Allocate(size_t bytes);

  size_t bytes_used() const { return bytes_used_; }          // by buffers, as they asked
  size_t bytes_held() const { return slabs_.held_bytes(); }  // from the driver

 private:
  static void Release(void* owner, void* data, size_t bytes);
  Status AddSlab(uint64_t bytes);
  Result<void*> TakeSlab(uint64_t bytes);
  // Of slabs that were let go and may not have reached the driver yet.
  uint64_t RetiredBytes() const;

  CudaStream& stream_;
  SlabMap slabs_;
  size_t bytes_used_ = 0;
  uint64_t limit_ = 0;
  uint64_t retired_bytes_ = 0;
  int64_t retired_generation_ = 0;  // of the stream, when the last of them went
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_ARENA_H_
