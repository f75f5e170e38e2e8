// SPDX-License-Identifier: Apache-2.0
// GrownBuffer: scratch of one stream that grows with what is asked of it and never shrinks. Old
// memory is retired, not freed: launches in flight may still use it. Contents do not survive
// growth. Never shared by two streams.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_GROWN_BUFFER_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_GROWN_BUFFER_H_

#include <cstddef>
#include <cstdint>

#include "engine/backend/cuda/arena.h"
#include "engine/base/result.h"

namespace hallmark {

class GrownBuffer {
 public:
  explicit GrownBuffer(DeviceArena& arena) : arena_(arena) {}

  // At least `bytes`, contents undefined. kResource leaves what was there.
  Result<void*> Reserve(size_t bytes) {
    if (bytes > buffer_.bytes()) {
      buffer_ = TRY(arena_.Allocate(bytes));
      ++moves_;
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
