// SPDX-License-Identifier: Apache-2.0
// GrownBuffer: scratch of one stream that grows with what is asked of it and never shrinks.
// Contents do not survive growth. Old memory goes back to the arena before new memory is taken, so
// that no more than the most is ever held: launches in flight may still use it, and come before
// whatever its next owner asks for. From a MiB on it takes whole pages, so that memory which was
// outgrown leaves no hole in a slab. Never shared by two streams.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_GROWN_BUFFER_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_GROWN_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/backend/cuda/arena.h"
#include "engine/base/result.h"

namespace hallmark {

class GrownBuffer {
 public:
  explicit GrownBuffer(DeviceArena& arena) : arena_(arena) {}

  // At least `bytes`, contents undefined. After kResource there is none, until the next call.
  Result<void*> Reserve(size_t bytes) {
    if (bytes > buffer_.bytes()) {
      { const Buffer outgrown = std::move(buffer_); }
      ++moves_;
      buffer_ = TRY(arena_.Allocate(SlabMap::GrownBytes(bytes)));
    }
    return buffer_.data();
  }
  size_t bytes() const { return buffer_.bytes(); }
  // How often the memory has become another.
  int64_t moves() const { return moves_; }

 private:
  DeviceArena& arena_;
  Buffer buffer_;
  int64_t moves_ = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_GROWN_BUFFER_H_
