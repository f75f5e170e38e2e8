// SPDX-License-Identifier: Apache-2.0
// CudaExecution: one stream with everything that belongs to it alone: its memory, staging, scratch,
// split workspace and fault words. Weights live in its arena too. Opening is all or nothing.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_EXECUTION_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_EXECUTION_H_

#include <memory>

#include "engine/backend/cuda/arena.h"
#include "engine/backend/cuda/device.h"
#include "engine/backend/cuda/fault_words.h"
#include "engine/backend/cuda/graph_cache.h"
#include "engine/backend/cuda/grown_buffer.h"
#include "engine/backend/cuda/pointer_tables.h"
#include "engine/backend/cuda/split_workspace.h"
#include "engine/backend/cuda/staging.h"
#include "engine/backend/cuda/stream.h"
#include "engine/base/result.h"

namespace hallmark {

class CudaExecution {
 public:
  // `device` outlives the execution.
  static Result<std::unique_ptr<CudaExecution>> Create(CudaDevice& device);

  CudaStream& stream() { return *stream_; }
  DeviceArena& arena() { return *arena_; }
  StagingBuffer& staging() { return *staging_; }
  FaultWords& faults() { return *faults_; }
  SplitWorkspace& split() { return *split_; }
  PointerTables& tables() { return *tables_; }
  GraphCache& graphs() { return *graphs_; }

  // Scratch, each for one purpose, valid until the next launch that reserves it.
  GrownBuffer& rotated() { return *rotated_; }      // an EXL3 input in fp16
  GrownBuffer& decoded() { return *decoded_; }      // W_q of one layer, for a long prompt
  GrownBuffer& ids() { return *ids_; }              // token ids of an Embed
  GrownBuffer& attention() { return *attention_; }  // partial results of attention
  GrownBuffer& delta_net() { return *delta_net_; }  // gates and normed keys of a call
  GrownBuffer& draft() { return *draft_; }          // scores and ranked columns of a drafter

  Status Launch(const char* name, const CudaDevice::Launcher& launcher) {
    return stream_->Launch(name, launcher);
  }
  // How often any of the scratch, or the split workspace, has moved.
  int64_t scratch_moves() const;

  // Device memory to the host; then reports what kernels found out of range so far.
  Status Download(void* host, const void* source, size_t bytes);
  // Waits, and reports.
  Status Finish();

 private:
  CudaExecution() = default;

  // In the order they depend on each other: the last goes first.
  std::unique_ptr<CudaStream> stream_;
  std::unique_ptr<DeviceArena> arena_;
  std::unique_ptr<StagingBuffer> staging_;
  std::unique_ptr<FaultWords> faults_;
  std::unique_ptr<SplitWorkspace> split_;
  std::unique_ptr<PointerTables> tables_;
  std::unique_ptr<GraphCache> graphs_;
  std::unique_ptr<GrownBuffer> rotated_, decoded_, ids_, attention_, delta_net_, draft_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_EXECUTION_H_
