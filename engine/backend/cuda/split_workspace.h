// SPDX-License-Identifier: Apache-2.0
// SplitWorkspace: partial sums and counters of split linears, of one stream. Counters are zeroed on
// that stream when they are allocated and whenever they grow; the kernels return them to zero
// (clause counters-zero). Two streams never share one.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_SPLIT_WORKSPACE_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_SPLIT_WORKSPACE_H_

#include <cstddef>
#include <cstdint>

#include "engine/backend/cuda/arena.h"
#include "engine/backend/cuda/grown_buffer.h"
#include "engine/backend/cuda/stream.h"
#include "engine/base/result.h"
#include "kernels/exl3/exl3_linear.h"

namespace hallmark {

class SplitWorkspace {
 public:
  // `arena` is that of `stream`.
  SplitWorkspace(CudaStream& stream, DeviceArena& arena)
      : stream_(stream), arena_(arena), partials_(arena) {}

  // For a launch that needs so many: none where no part of it is split.
  Result<Exl3Workspace> Reserve(size_t partials_bytes, size_t counters);

  const Buffer& counters() const { return counters_; }
  // Reservations with counters, and how often they came to lie in new memory.
  int64_t launches() const { return launches_; }
  int64_t growths() const { return growths_; }
  // How often its memory has become another.
  int64_t moves() const { return growths_ + partials_.moves(); }

 private:
  CudaStream& stream_;
  DeviceArena& arena_;
  GrownBuffer partials_;
  Buffer counters_;
  int64_t launches_ = 0;
  int64_t growths_ = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_SPLIT_WORKSPACE_H_
