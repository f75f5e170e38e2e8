// SPDX-License-Identifier: Apache-2.0
// StagingBuffer: page-locked memory through which everything travels between host and device. What
// is sent is copied here before a call returns, so its source may be pageable, misaligned, or gone
// right after. Filled from front to back; when it is full the stream is waited for.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_STAGING_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_STAGING_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "engine/backend/cuda/stream.h"
#include "engine/base/result.h"

namespace hallmark {

class StagingBuffer {
 public:
  static constexpr size_t kBytes = size_t{8} << 20;

  static Result<std::unique_ptr<StagingBuffer>> Create(CudaStream& stream);
  ~StagingBuffer();
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;

  // The device sees the bytes in stream order.
  Status Send(void* to, const void* host, size_t bytes);
  // The same for bytes that are made piece by piece: `fill(first, count, place)` writes bytes
  // [first, first + count) to `place`; pieces begin at multiples of 256.
  using Fill = std::function<void(size_t first, size_t count, std::byte* place)>;
  Status SendFilled(void* to, size_t bytes, const Fill& fill);
  // Waits; the bytes are in `host` when it returns.
  Status Receive(void* host, const void* from, size_t bytes);

 private:
  StagingBuffer(CudaStream& stream, MappedMemory memory) : stream_(stream), memory_(memory) {}
  // At least one piece of room; `*count` is cut to what there is.
  Result<std::byte*> Take(size_t* count);

  CudaStream& stream_;
  MappedMemory memory_;
  size_t used_ = 0;
  int64_t generation_ = 0;  // of the stream when used_ was counted
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_STAGING_H_
