// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/stream.h"

#include <utility>

namespace hallmark {

Result<std::unique_ptr<CudaStream>> CudaStream::Create(CudaDevice& device) {
  const cudaStream_t stream = TRY(device.CreateStream());
  return std::unique_ptr<CudaStream>(new CudaStream(device, stream));
}

CudaStream::~CudaStream() {
  if (in_flight_) (void)device_.Synchronize(stream_);
  ReleaseRetired();
  device_.DestroyStream(stream_);
}

// Memory that runs out and code that is missing leave the device usable; any other failure does
// not, and what it left behind is not to be computed with.
Status CudaStream::Keep(Status status) {
  if (!status.has_value() && status.error().code == Code::kDevice && !lost_) {
    lost_ = status.error();
    if (std::exchange(recording_, false)) device_.AbandonCapture(stream_);
    // Nothing more is enqueued; what already was must be past before memory goes back.
    (void)device_.Synchronize(stream_);
    in_flight_ = false;
    ReleaseRetired();
  }
  return status;
}

template <typename Call>
Status CudaStream::Enqueue(Call call) {
  if (lost_) return Fail(*lost_);
  if (!recording_) in_flight_ = true;  // even a call that fails may have enqueued something
  return Keep(call());
}

Status CudaStream::Usable() const {
  if (lost_) return Fail(*lost_);
  if (recording_)
    return Fail(Code::kInternal, "work that is recorded asked for what a graph lacks");
  return {};
}

Result<cudaGraphExec_t> CudaStream::Record(const std::function<Status()>& work) {
  TRY(Usable());
  TRY(Keep(device_.BeginCapture(stream_)));
  recording_ = true;
  const Status worked = work();
  if (!worked.has_value()) {
    if (std::exchange(recording_, false)) device_.AbandonCapture(stream_);
    return Fail(worked.error());
  }
  recording_ = false;
  auto graph = device_.EndCapture(stream_);
  if (!graph.has_value()) TRY(Keep(Fail(graph.error())));
  return graph;
}

Status CudaStream::Replay(cudaGraphExec_t graph) {
  TRY(Usable());
  return Enqueue([&] { return device_.LaunchGraph(graph, stream_); });
}

Status CudaStream::Fill(void* memory, uint8_t byte, size_t bytes) {
  if (bytes == 0) return {};
  return Enqueue([&] { return device_.Memset(memory, byte, bytes, stream_); });
}

Status CudaStream::CopyToDevice(void* to, const void* host, size_t bytes) {
  if (bytes == 0) return {};
  TRY(Usable());
  return Enqueue([&] { return device_.CopyToDevice(to, host, bytes, stream_); });
}

Status CudaStream::CopyToHost(void* host, const void* from, size_t bytes) {
  if (bytes == 0) return {};
  TRY(Usable());
  return Enqueue([&] { return device_.CopyToHost(host, from, bytes, stream_); });
}

Status CudaStream::CopyOnDevice(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return {};
  return Enqueue([&] { return device_.CopyOnDevice(to, from, bytes, stream_); });
}

Status CudaStream::Launch(const char* name, const CudaDevice::Launcher& launcher) {
  return Enqueue([&] { return device_.Launch(name, stream_, launcher); });
}

Status CudaStream::Synchronize() {
  TRY(Usable());
  TRY(Keep(device_.Synchronize(stream_)));
  in_flight_ = false;
  ++generation_;
  ReleaseRetired();
  return {};
}

Result<void*> CudaStream::Allocate(size_t bytes) {
  TRY(Usable());
  auto memory = device_.Allocate(bytes);
  if (!memory.has_value() && memory.error().code == Code::kResource && !retired_.empty()) {
    TRY(Synchronize());
    memory = device_.Allocate(bytes);
  }
  if (!memory.has_value()) TRY(Keep(Fail(memory.error())));
  return memory;
}

Result<MappedMemory> CudaStream::AllocateMapped(size_t bytes) {
  TRY(Usable());
  auto memory = device_.AllocateMapped(bytes);
  if (!memory.has_value()) TRY(Keep(Fail(memory.error())));
  return memory;
}

void CudaStream::Retire(void* memory) {
  retired_.push_back(memory);
  if (!in_flight_) ReleaseRetired();
}

void CudaStream::Retire(const MappedMemory& memory) {
  retired_mapped_.push_back(memory);
  if (!in_flight_) ReleaseRetired();
}

void CudaStream::Retire(cudaGraphExec_t graph) {
  retired_graphs_.push_back(graph);
  if (!in_flight_) ReleaseRetired();
}

void CudaStream::ReleaseRetired() {
  for (cudaGraphExec_t graph : std::exchange(retired_graphs_, {})) device_.DestroyGraph(graph);
  for (void* memory : std::exchange(retired_, {})) device_.Free(memory);
  for (const MappedMemory& memory : std::exchange(retired_mapped_, {})) device_.FreeMapped(memory);
}

}  // namespace hallmark
