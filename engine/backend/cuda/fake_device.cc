// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/fake_device.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace hallmark {
namespace {

constexpr size_t kAlignment = 256;
// What fresh memory holds: a NaN in every type, so that nothing relies on zeros.
constexpr int kUndefined = 0xFF;

}  // namespace

FakeCudaDevice::FakeCudaDevice()
    : facts_{.name = "Fake GPU",
             .major = 9,
             .minor = 0,
             .total_bytes = uint64_t{1} << 40,
             .integrated = false,
             .driver_version = 13000,
             .runtime_version = 13000} {}

FakeCudaDevice::~FakeCudaDevice() = default;

std::vector<std::string> FakeCudaDevice::Problems() const {
  std::vector<std::string> problems = faults_;
  const auto held = [&](size_t count, const char* what) {
    if (count > 0) problems.push_back(std::to_string(count) + " " + what + " held");
  };
  held(device_bytes_, "bytes of device memory");
  held(mapped_bytes_, "bytes of page-locked memory");
  held(streams_.size(), "streams");
  held(graphs_.size(), "graphs");
  return problems;
}

Status FakeCudaDevice::Begin(CudaCall call) {
  ++fallible_calls_;
  const bool fails = calls_left-- == 0;
  const std::string name = call.name;
  calls_.push_back(std::move(call));
  if (lost_) return Fail(Code::kDevice, "the device is lost, as planned", {.launcher = name});
  if (fails) return Fail(Code::kDevice, "the call fails, as planned", {.launcher = name});
  return {};
}

bool FakeCudaDevice::AllocationFails() {
  if (allocations_left != 0) {
    --allocations_left;
    return false;
  }
  if (--allocations_short == 0) allocations_left = -1;
  return true;
}

std::byte* FakeCudaDevice::TakeBlock(size_t bytes, bool mapped) {
  Block block{std::make_unique<std::byte[]>(bytes + kAlignment), bytes, mapped};
  const auto address = reinterpret_cast<uintptr_t>(block.memory.get());
  std::byte* memory = block.memory.get() + (kAlignment - address % kAlignment);
  std::memset(memory, kUndefined, bytes);
  blocks_.emplace(memory, std::move(block));
  (mapped ? mapped_bytes_ : device_bytes_) += bytes;
  return memory;
}

void FakeCudaDevice::GiveBlock(std::byte* memory, bool mapped) {
  const auto block = blocks_.find(memory);
  if (block == blocks_.end() || block->second.mapped != mapped) {
    Fault("memory was freed that is not held");
    return;
  }
  (mapped ? mapped_bytes_ : device_bytes_) -= block->second.bytes;
  // What is pending may yet touch it, and a recorded graph may be launched again: the memory stays,
  // so that nothing is spoilt and no later block lies where this one lay.
  const auto named_by = [memory](const Work& work) { return work.blocks.contains(memory); };
  const bool in_flight = std::ranges::any_of(
      streams_, [&](const auto& entry) { return named_by(entry.second.pending); });
  const bool in_graph =
      std::ranges::any_of(graphs_, [&](const auto& entry) { return named_by(entry.second); });
  if (in_flight && !lost_) Fault("memory was freed while in flight");
  if (in_flight || in_graph) graveyard_.push_back(std::move(block->second.memory));
  blocks_.erase(block);
}

const std::byte* FakeCudaDevice::BlockOf(const void* memory, size_t bytes, bool mapped,
                                         const char* use) {
  const auto* first = static_cast<const std::byte*>(memory);
  auto block = blocks_.upper_bound(first);
  if (block != blocks_.begin()) {
    --block;
    const bool inside = first + bytes <= block->first + block->second.bytes;
    if (inside && block->second.mapped == mapped) return block->first;
  }
  Fault(std::string(use) + (mapped ? " names no page-locked memory" : " names no device memory"));
  return nullptr;
}

FakeCudaDevice::Stream* FakeCudaDevice::StreamOf(cudaStream_t stream) {
  const auto entry = streams_.find(stream);
  if (entry != streams_.end()) return &entry->second;
  Fault("a call on a stream that does not exist, or on the legacy stream");
  return nullptr;
}

Result<uint64_t> FakeCudaDevice::FreeBytes() {
  if (lost_) return Fail(Code::kDevice, "the device is lost, as planned");
  return memory_limit - device_bytes_;
}

Result<void*> FakeCudaDevice::Allocate(size_t bytes) {
  ++allocations_;
  TRY(Begin({.kind = CudaCallKind::kAllocate, .bytes = bytes}));
  if (AllocationFails() || device_bytes_ + bytes > memory_limit) {
    return Fail(Code::kResource, "no device memory, as planned");
  }
  std::byte* memory = TakeBlock(bytes, false);
  calls_.back().address = memory;
  return memory;
}

Result<MappedMemory> FakeCudaDevice::AllocateMapped(size_t bytes) {
  ++allocations_;
  TRY(Begin({.kind = CudaCallKind::kAllocateMapped, .bytes = bytes}));
  if (AllocationFails()) {
    return Fail(Code::kResource, "no page-locked memory, as planned");
  }
  std::byte* memory = TakeBlock(bytes, true);
  calls_.back().address = memory;
  return MappedMemory{memory, memory};
}

void FakeCudaDevice::Free(void* memory) {
  calls_.push_back({.kind = CudaCallKind::kFree, .address = memory});
  GiveBlock(static_cast<std::byte*>(memory), false);
}

void FakeCudaDevice::FreeMapped(const MappedMemory& memory) {
  calls_.push_back({.kind = CudaCallKind::kFreeMapped, .address = memory.host});
  GiveBlock(memory.host, true);
}

Result<cudaStream_t> FakeCudaDevice::CreateStream() {
  TRY(Begin({.kind = CudaCallKind::kCreateStream}));
  const auto stream = reinterpret_cast<cudaStream_t>(next_stream_++);
  streams_[stream];
  calls_.back().stream = stream;
  return stream;
}

void FakeCudaDevice::DestroyStream(cudaStream_t stream) {
  calls_.push_back({.kind = CudaCallKind::kDestroyStream, .stream = stream});
  if (streams_.erase(stream) == 0) Fault("a stream was destroyed that does not exist");
}

Status FakeCudaDevice::Synchronize(cudaStream_t stream) {
  TRY(Begin({.kind = CudaCallKind::kSynchronize, .stream = stream}));
  Stream* own = StreamOf(stream);
  if (own == nullptr) return {};
  if (own->captured) Fault("a stream was waited for while it was captured");
  for (const auto& step : std::exchange(own->pending, {}).steps) step();
  own->graphs.clear();
  return {};
}

Status FakeCudaDevice::Memset(void* memory, int byte, size_t bytes, cudaStream_t stream) {
  TRY(Begin({.kind = CudaCallKind::kMemset, .stream = stream, .address = memory, .bytes = bytes}));
  Stream* own = StreamOf(stream);
  const std::byte* block = BlockOf(memory, bytes, false, "a fill");
  if (own == nullptr || block == nullptr) return {};
  WorkOf(*own).blocks.insert(block);
  WorkOf(*own).steps.push_back([=] { std::memset(memory, byte, bytes); });
  return {};
}

Status FakeCudaDevice::Transfer(CudaCall call, void* to, const void* from, bool to_mapped,
                                bool from_mapped) {
  const size_t bytes = call.bytes;
  const cudaStream_t stream = call.stream;
  TRY(Begin(std::move(call)));
  Stream* own = StreamOf(stream);
  const std::byte* target = BlockOf(to, bytes, to_mapped, "a copy's target");
  const std::byte* source = BlockOf(from, bytes, from_mapped, "a copy's source");
  if (own == nullptr || target == nullptr || source == nullptr) return {};
  if (own->captured && (to_mapped || from_mapped)) Fault("a capture holds a copy of the host's");
  WorkOf(*own).blocks.insert({target, source});
  WorkOf(*own).steps.push_back([=] { std::memmove(to, from, bytes); });
  return {};
}

Status FakeCudaDevice::CopyToDevice(void* to, const void* host, size_t bytes, cudaStream_t stream) {
  return Transfer({CudaCallKind::kCopyToDevice, stream, to, bytes, ""}, to, host, false, true);
}

Status FakeCudaDevice::CopyToHost(void* host, const void* from, size_t bytes, cudaStream_t stream) {
  return Transfer({CudaCallKind::kCopyToHost, stream, host, bytes, ""}, host, from, true, false);
}

Status FakeCudaDevice::CopyOnDevice(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  return Transfer({CudaCallKind::kCopyOnDevice, stream, to, bytes, ""}, to, from, false, false);
}

Status FakeCudaDevice::Launch(const char* name, cudaStream_t stream, const Launcher&) {
  ++launches_;
  if (launches_left-- == 0) lost_ = true;
  TRY(Begin({.kind = CudaCallKind::kLaunch, .stream = stream, .name = name}));
  Stream* own = StreamOf(stream);
  if (own == nullptr) return {};
  if (own->captured) return {};
  // A kernel may read anything.
  for (const auto& [memory, block] : blocks_) own->pending.blocks.insert(memory);
  return {};
}

Status FakeCudaDevice::BeginCapture(cudaStream_t stream) {
  TRY(Begin({.kind = CudaCallKind::kBeginCapture, .stream = stream}));
  Stream* own = StreamOf(stream);
  if (own == nullptr) return {};
  if (own->captured) Fault("a capture was begun inside another");
  own->captured.emplace();
  return {};
}

Result<cudaGraphExec_t> FakeCudaDevice::EndCapture(cudaStream_t stream) {
  Stream* own = StreamOf(stream);
  if (own == nullptr || !own->captured) {
    Fault("a capture was ended that was not begun");
    return Fail(Code::kDevice, "no capture");
  }
  Work work = std::move(*own->captured);
  own->captured.reset();
  TRY(Begin({.kind = CudaCallKind::kEndCapture, .stream = stream}));
  if (graphs_left-- == 0) return Fail(Code::kResource, "no memory for a graph, as planned");
  const auto graph = reinterpret_cast<cudaGraphExec_t>(next_graph_++);
  graphs_.emplace(graph, std::move(work));
  return graph;
}

void FakeCudaDevice::AbandonCapture(cudaStream_t stream) {
  Stream* own = StreamOf(stream);
  if (own == nullptr) return;
  if (!own->captured) Fault("a capture was abandoned that was not begun");
  own->captured.reset();
}

Status FakeCudaDevice::LaunchGraph(cudaGraphExec_t graph, cudaStream_t stream) {
  ++launches_;
  if (launches_left-- == 0) lost_ = true;
  TRY(Begin({.kind = CudaCallKind::kLaunchGraph, .stream = stream, .address = graph}));
  Stream* own = StreamOf(stream);
  const auto known = graphs_.find(graph);
  if (own == nullptr) return {};
  if (known == graphs_.end()) {
    Fault("a graph was launched that does not exist");
    return {};
  }
  for (const std::byte* block : known->second.blocks) {
    if (!blocks_.contains(block)) Fault("a graph uses memory that was freed");
  }
  own->graphs.insert(graph);
  own->pending.steps.insert(own->pending.steps.end(), known->second.steps.begin(),
                            known->second.steps.end());
  for (const auto& [memory, block] : blocks_) own->pending.blocks.insert(memory);
  return {};
}

void FakeCudaDevice::DestroyGraph(cudaGraphExec_t graph) {
  calls_.push_back({.kind = CudaCallKind::kDestroyGraph, .address = graph});
  for (const auto& [handle, stream] : streams_) {
    if (stream.graphs.contains(graph) && !lost_) Fault("a graph was destroyed while in flight");
  }
  if (graphs_.erase(graph) == 0) Fault("a graph was destroyed that does not exist");
}

}  // namespace hallmark
