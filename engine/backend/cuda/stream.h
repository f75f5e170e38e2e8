// SPDX-License-Identifier: Apache-2.0
// CudaStream: one stream of execution. It remembers whether anything is in flight, keeps memory
// that was let go until the device is past it, and after the first device error answers every
// further call with that error. Clause failure-isolation. Not thread-safe.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_STREAM_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/backend/cuda/device.h"
#include "engine/base/result.h"

namespace hallmark {

class CudaStream {
 public:
  // `device` outlives the stream.
  static Result<std::unique_ptr<CudaStream>> Create(CudaDevice& device);
  // Waits for what is in flight, and gives back all retired memory.
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  // In stream order; the host's side of a copy is page-locked (CudaDevice). Zero bytes are no call.
  Status Fill(void* memory, uint8_t byte, size_t bytes);
  Status CopyToDevice(void* to, const void* host, size_t bytes);
  Status CopyToHost(void* host, const void* from, size_t bytes);
  Status CopyOnDevice(void* to, const void* from, size_t bytes);
  Status Launch(const char* name, const CudaDevice::Launcher& launcher);
  // Waits, then gives back what was retired.
  Status Synchronize();

  // A graph of what `work` enqueues; none of it is done. Whatever would wait, travel to or from the
  // host or take memory is refused meanwhile (kInternal), and then there is no graph. The caller
  // retires it.
  Result<cudaGraphExec_t> Record(const std::function<Status()>& work);
  Status Replay(cudaGraphExec_t graph);

  // The error that ended all work, or kInternal while work is recorded: then nothing is taken.
  Status Usable() const;
  // Device memory; when there is none, once more after retired memory has gone back.
  Result<void*> Allocate(size_t bytes);
  Result<MappedMemory> AllocateMapped(size_t bytes);
  // Gives memory back to the device once nothing in flight can use it.
  void Retire(void* memory);
  void Retire(const MappedMemory& memory);
  void Retire(cudaGraphExec_t graph);

  // The error that ended all work here, if one did.
  const std::optional<Error>& lost() const { return lost_; }
  // Counts how often the stream was waited for: what was enqueued before is done by then.
  int64_t generation() const { return generation_; }
  CudaDevice& device() const { return device_; }

 private:
  CudaStream(CudaDevice& device, cudaStream_t stream) : device_(device), stream_(stream) {}
  template <typename Call>
  Status Enqueue(Call call);
  Status Keep(Status status);
  void ReleaseRetired();

  CudaDevice& device_;
  cudaStream_t stream_;
  bool in_flight_ = false;
  bool recording_ = false;
  int64_t generation_ = 0;
  std::optional<Error> lost_;
  std::vector<void*> retired_;
  std::vector<MappedMemory> retired_mapped_;
  std::vector<cudaGraphExec_t> retired_graphs_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_STREAM_H_
