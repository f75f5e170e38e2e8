// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/execution.h"

namespace hallmark {

Result<std::unique_ptr<CudaExecution>> CudaExecution::Create(CudaDevice& device) {
  std::unique_ptr<CudaExecution> execution(new CudaExecution);
  execution->stream_ = TRY(CudaStream::Create(device));
  CudaStream& stream = *execution->stream_;
  execution->arena_ = std::make_unique<DeviceArena>(stream);
  DeviceArena& arena = *execution->arena_;
  execution->staging_ = TRY(StagingBuffer::Create(stream));
  execution->faults_ = TRY(FaultWords::Create(stream, arena));
  execution->split_ = std::make_unique<SplitWorkspace>(stream, arena);
  execution->tables_ = std::make_unique<PointerTables>(arena, *execution->staging_);
  execution->graphs_ = std::make_unique<GraphCache>(stream);
  execution->rotated_ = std::make_unique<GrownBuffer>(arena);
  execution->decoded_ = std::make_unique<GrownBuffer>(arena);
  execution->ids_ = std::make_unique<GrownBuffer>(arena);
  execution->attention_ = std::make_unique<GrownBuffer>(arena);
  execution->delta_net_ = std::make_unique<GrownBuffer>(arena);
  execution->draft_ = std::make_unique<GrownBuffer>(arena);
  return execution;
}

int64_t CudaExecution::scratch_moves() const {
  int64_t moves = split_->moves();
  for (const GrownBuffer* buffer : {rotated_.get(), decoded_.get(), ids_.get(), attention_.get(),
                                    delta_net_.get(), draft_.get()}) {
    moves += buffer->moves();
  }
  return moves;
}

Status CudaExecution::Download(void* host, const void* source, size_t bytes) {
  TRY(faults_->Read());
  if (bytes == 0) return Finish();
  TRY(staging_->Receive(host, source, bytes));
  return faults_->Take();
}

Status CudaExecution::Finish() {
  TRY(faults_->Read());
  TRY(stream_->Synchronize());
  return faults_->Take();
}

}  // namespace hallmark
