// SPDX-License-Identifier: Apache-2.0
// FakeCudaDevice: stands in for the driver in tests on machines without a GPU. Device memory is
// host memory; copies and fills take effect when their stream is waited for, not before, so that
// memory which is used too early or let go too soon shows. No kernel runs: a launch is recorded and
// its launcher is not called. For tests alone.
//
// A use of memory that a real device would not forgive is written down in faults(); a test demands
// that there are none.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_FAKE_DEVICE_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_FAKE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/backend/cuda/device.h"

namespace hallmark {

enum class CudaCallKind {
  kAllocate,
  kAllocateMapped,
  kFree,
  kFreeMapped,
  kCreateStream,
  kDestroyStream,
  kSynchronize,
  kMemset,
  kCopyToDevice,
  kCopyToHost,
  kCopyOnDevice,
  kLaunch,
  kBeginCapture,
  kEndCapture,
  kLaunchGraph,
  kDestroyGraph,
};

struct CudaCall {
  CudaCallKind kind = CudaCallKind::kLaunch;
  cudaStream_t stream = nullptr;
  const void* address = nullptr;  // what is written, allocated or freed
  size_t bytes = 0;
  std::string name;  // of a launch
};

class FakeCudaDevice : public CudaDevice {
 public:
  FakeCudaDevice();
  ~FakeCudaDevice() override;

  // Plans. Counted from now on, from 0; below 0: never.
  int64_t calls_left = -1;        // the call after this many fails: kDevice, nothing is done
  int64_t allocations_left = -1;  // the allocation after this many finds no memory, kResource
  int64_t allocations_short = 1;  // and so many in all from there on
  int64_t launches_left = -1;     // the launch after this many loses the device, for good
  int64_t graphs_left = -1;       // the graph after this many finds no memory, kResource
  uint64_t memory_limit = uint64_t{1} << 40;  // device bytes that may be out

  // What happened.
  const std::vector<CudaCall>& calls() const { return calls_; }
  void ForgetCalls() { calls_.clear(); }
  const std::vector<std::string>& faults() const { return faults_; }
  // The faults, and a line for each kind of thing that is still held.
  std::vector<std::string> Problems() const;
  bool lost() const { return lost_; }
  int64_t launches() const { return launches_; }
  int64_t allocations() const { return allocations_; }
  // Calls that can fail: all but those that give something back.
  int64_t fallible_calls() const { return fallible_calls_; }
  size_t device_bytes() const { return device_bytes_; }
  size_t mapped_bytes() const { return mapped_bytes_; }
  int64_t streams() const { return static_cast<int64_t>(streams_.size()); }

  const CudaDeviceFacts& facts() const override { return facts_; }
  Result<uint64_t> FreeBytes() override;
  Result<void*> Allocate(size_t bytes) override;
  Result<MappedMemory> AllocateMapped(size_t bytes) override;
  void Free(void* memory) override;
  void FreeMapped(const MappedMemory& memory) override;
  Result<cudaStream_t> CreateStream() override;
  void DestroyStream(cudaStream_t stream) override;
  Status Synchronize(cudaStream_t stream) override;
  Status Memset(void* memory, int byte, size_t bytes, cudaStream_t stream) override;
  Status CopyToDevice(void* to, const void* host, size_t bytes, cudaStream_t stream) override;
  Status CopyToHost(void* host, const void* from, size_t bytes, cudaStream_t stream) override;
  Status CopyOnDevice(void* to, const void* from, size_t bytes, cudaStream_t stream) override;
  Status Launch(const char* name, cudaStream_t stream, const Launcher& launcher) override;
  Status BeginCapture(cudaStream_t stream) override;
  Result<cudaGraphExec_t> EndCapture(cudaStream_t stream) override;
  void AbandonCapture(cudaStream_t stream) override;
  Status LaunchGraph(cudaGraphExec_t graph, cudaStream_t stream) override;
  void DestroyGraph(cudaGraphExec_t graph) override;

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;  // with room to align
    size_t bytes = 0;
    bool mapped = false;
  };
  // What was enqueued, and the blocks that it names.
  struct Work {
    std::vector<std::function<void()>> steps;
    std::set<const std::byte*> blocks;  // by address
  };
  struct Stream {
    Work pending;
    std::optional<Work> captured;  // while a capture is on
    std::set<cudaGraphExec_t> graphs;
  };

  // Records a call that may fail, and fails it if that is planned.
  Status Begin(CudaCall call);
  void Fault(const std::string& what) { faults_.push_back(what); }
  bool AllocationFails();
  std::byte* TakeBlock(size_t bytes, bool mapped);
  void GiveBlock(std::byte* memory, bool mapped);
  // The live block that holds [memory, memory + bytes); null, with a fault, if there is none.
  const std::byte* BlockOf(const void* memory, size_t bytes, bool mapped, const char* use);
  Stream* StreamOf(cudaStream_t stream);
  // Where the next call of the stream is written down.
  static Work& WorkOf(Stream& stream) {
    return stream.captured ? *stream.captured : stream.pending;
  }
  Status Transfer(CudaCall call, void* to, const void* from, bool to_mapped, bool from_mapped);

  CudaDeviceFacts facts_;
  std::map<const std::byte*, Block> blocks_;
  std::vector<std::unique_ptr<std::byte[]>> graveyard_;  // freed, and still named
  std::map<cudaStream_t, Stream> streams_;
  std::map<cudaGraphExec_t, Work> graphs_;
  std::vector<CudaCall> calls_;
  std::vector<std::string> faults_;
  bool lost_ = false;
  int64_t launches_ = 0;
  int64_t allocations_ = 0;
  int64_t fallible_calls_ = 0;
  size_t device_bytes_ = 0;
  size_t mapped_bytes_ = 0;
  uintptr_t next_stream_ = 1;
  uintptr_t next_graph_ = 1;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_FAKE_DEVICE_H_
