// SPDX-License-Identifier: Apache-2.0
// CudaDevice: every driver call that the CUDA backend makes, and nothing else, so that a test can
// stand in for the driver (fake_device.h) and see each call, fail it, and count what is held. Not
// for kernels: those are entered through Launch alone. Clauses: counters-zero, failure-isolation.
//
// Errors: kResource where memory is short; kUnsupported where the machine or the build lacks
// something; kDevice for every other failure, after which the device is not to be trusted.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_DEVICE_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_DEVICE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/result.h"

namespace hallmark {

struct CudaDeviceFacts {
  std::string name;  // "NVIDIA H200"
  int major = 0;     // compute capability
  int minor = 0;
  uint64_t total_bytes = 0;
  bool integrated = false;  // shares the host's memory
  int driver_version = 0;   // the newest CUDA that the driver serves: 1000 * major + 10 * minor
  int runtime_version = 0;  // the CUDA that this build holds
};

// Page-locked host memory that the device reaches too.
struct MappedMemory {
  std::byte* host = nullptr;
  std::byte* device = nullptr;  // the same bytes in the device's addresses
};

class CudaDevice {
 public:
  using Launcher = std::function<cudaError_t(cudaStream_t)>;

  virtual ~CudaDevice() = default;

  virtual const CudaDeviceFacts& facts() const = 0;
  virtual Result<uint64_t> FreeBytes() = 0;

  // bytes > 0. At least 256-byte aligned, contents undefined.
  virtual Result<void*> Allocate(size_t bytes) = 0;
  virtual Result<MappedMemory> AllocateMapped(size_t bytes) = 0;
  // Nothing that is enqueued may still use the memory. They give no error: a device that is lost
  // has lost its memory too.
  virtual void Free(void* memory) = 0;
  virtual void FreeMapped(const MappedMemory& memory) = 0;

  // A stream that waits for no other, the legacy stream included.
  virtual Result<cudaStream_t> CreateStream() = 0;
  virtual void DestroyStream(cudaStream_t stream) = 0;
  // Waits until all that was enqueued is done, and reports what failed in it.
  virtual Status Synchronize(cudaStream_t stream) = 0;

  // In stream order. Host memory is a MappedMemory's and keeps its bytes until the stream is past.
  virtual Status Memset(void* memory, int byte, size_t bytes, cudaStream_t stream) = 0;
  virtual Status CopyToDevice(void* to, const void* host, size_t bytes, cudaStream_t stream) = 0;
  virtual Status CopyToHost(void* host, const void* from, size_t bytes, cudaStream_t stream) = 0;
  virtual Status CopyOnDevice(void* to, const void* from, size_t bytes, cudaStream_t stream) = 0;

  // Calls a kernel launcher. An error names it.
  virtual Status Launch(const char* name, cudaStream_t stream, const Launcher& launcher) = 0;

  // From Begin to End, fills, copies on the device and launches of the stream are written down
  // instead of done; nothing else may be asked of it. An End that fails leaves nothing behind and
  // the stream as it was; so does Abandon.
  virtual Status BeginCapture(cudaStream_t stream) = 0;
  virtual Result<cudaGraphExec_t> EndCapture(cudaStream_t stream) = 0;
  virtual void AbandonCapture(cudaStream_t stream) = 0;
  // Does what was written down, in stream order, as often as it is called.
  virtual Status LaunchGraph(cudaGraphExec_t graph, cudaStream_t stream) = 0;
  // Like Free.
  virtual void DestroyGraph(cudaGraphExec_t graph) = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_DEVICE_H_
