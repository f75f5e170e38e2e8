// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/exl3_linears.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/base/float_types.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

constexpr size_t kWeightBytes = size_t{480} << 20;  // 8 times an L2 of 60 MB
constexpr int64_t kMostRows = 2048;
constexpr int64_t kMostInputs = 17408;
constexpr int64_t kMostOutputs = 248320;
constexpr size_t kPartialBytes = size_t{1} << 30;
constexpr int kMostCopies = 32;
constexpr int kReplays = 9;

Status Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  return Fail(Code::kDevice, std::string(what) + ": " + cudaGetErrorString(error));
}

// Device memory that starts as random bytes, or zero.
Status Fill(void* memory, size_t bytes, uint64_t seed) {
  constexpr size_t kPiece = size_t{64} << 20;
  std::vector<uint64_t> words(std::min(bytes, kPiece) / 8 + 1);
  SplitMix64 random(seed);
  for (uint64_t& word : words) word = random.Next();
  for (size_t at = 0; at < bytes; at += kPiece) {
    TRY(Check(cudaMemcpy(static_cast<char*>(memory) + at, words.data(),
                         std::min(kPiece, bytes - at), cudaMemcpyHostToDevice),
              "cudaMemcpy"));
  }
  return {};
}

}  // namespace

const std::vector<LinearGroup>& LinearsOf27B() {
  static const std::vector<LinearGroup> kGroups = {
      {"gate up", 5120, {17408, 17408}, 64}, {"down", 17408, {5120}, 64},
      {"qkv z", 5120, {10240, 6144}, 48},    {"q k v", 5120, {12288, 1024, 1024}, 16},
      {"o, out", 6144, {5120}, 64},          {"head", 5120, {248320}, 1},
  };
  return kGroups;
}

struct Exl3LinearsBench::Buffers {
  uint32_t* weights = nullptr;
  float* x = nullptr;
  void* xh = nullptr;
  float* y = nullptr;
  uint16_t* scales = nullptr;
  float* partials = nullptr;
  int32_t* counters = nullptr;
  int32_t* overflow = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;

  ~Buffers() {
    for (void* memory :
         {static_cast<void*>(weights), static_cast<void*>(x), xh, static_cast<void*>(y),
          static_cast<void*>(scales), static_cast<void*>(partials), static_cast<void*>(counters),
          static_cast<void*>(overflow)}) {
      cudaFree(memory);
    }
    if (begin != nullptr) cudaEventDestroy(begin);
    if (end != nullptr) cudaEventDestroy(end);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
  template <typename T>
  static Status Allocate(T** memory, size_t bytes) {
    void* raw = nullptr;
    TRY(Check(cudaMalloc(&raw, bytes), "cudaMalloc"));
    *memory = static_cast<T*>(raw);
    return {};
  }
  Status Open();
};

Status Exl3LinearsBench::Buffers::Open() {
  TRY(Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate"));
  TRY(Check(cudaEventCreate(&begin), "cudaEventCreate"));
  TRY(Check(cudaEventCreate(&end), "cudaEventCreate"));
  // The head at 6 bits is the largest single layer.
  TRY(Allocate(&weights, std::max(kWeightBytes, size_t{5120} * 248320)));
  TRY(Fill(weights, std::max(kWeightBytes, size_t{5120} * 248320), 1));
  TRY(Allocate(&x, sizeof(float) * kMostRows * kMostInputs));
  std::vector<float> host(kMostRows * kMostInputs);
  SplitMix64 random(2);
  for (float& value : host) value = random.NextSigned();
  TRY(Check(cudaMemcpy(x, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice),
            "cudaMemcpy"));
  TRY(Allocate(&xh, kExl3MaxRotations * Exl3RotatedBytes(kMostRows, kMostInputs)));
  TRY(Allocate(&y, sizeof(float) * std::max(kMostRows * int64_t{2 * 17408}, 128 * kMostOutputs)));
  std::vector<uint16_t> ones(kMostOutputs, FloatToHalf(1.0f));
  TRY(Allocate(&scales, ones.size() * 2));
  TRY(Check(cudaMemcpy(scales, ones.data(), ones.size() * 2, cudaMemcpyHostToDevice),
            "cudaMemcpy"));
  TRY(Allocate(&partials, kPartialBytes));
  TRY(Allocate(&counters, size_t{1} << 20));
  TRY(Check(cudaMemset(counters, 0, size_t{1} << 20), "cudaMemset"));
  TRY(Allocate(&overflow, sizeof(int32_t)));
  TRY(Check(cudaMemset(overflow, 0, sizeof(int32_t)), "cudaMemset"));
  return Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

Result<Exl3LinearsBench> Exl3LinearsBench::Create() {
  Exl3LinearsBench bench(new Buffers());
  TRY(bench.buffers_->Open());
  return bench;
}

Exl3LinearsBench::Exl3LinearsBench(Exl3LinearsBench&& other) noexcept
    : buffers_(std::exchange(other.buffers_, nullptr)) {}
Exl3LinearsBench::~Exl3LinearsBench() { delete buffers_; }

Result<std::vector<LinearTime>> Exl3LinearsBench::Time(const LinearGroup& group,
                                                       Exl3KernelRate rate,
                                                       const std::vector<int64_t>& rows,
                                                       const Exl3RangePlan* plan) {
  Buffers& b = *buffers_;
  const int64_t columns = std::accumulate(group.n.begin(), group.n.end(), int64_t{0});
  const size_t bytes = static_cast<size_t>(group.k * columns / 16 * rate.k2);
  const int copies = std::clamp<int>(static_cast<int>(kWeightBytes / bytes), 1, kMostCopies);
  std::vector<LinearTime> times;
  for (const int64_t count : rows) {
    TRY(Check(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal), "capture"));
    cudaError_t error = cudaSuccess;
    for (int copy = 0; copy < copies && error == cudaSuccess; ++copy) {
      const uint32_t* trellis = b.weights + bytes / 4 * static_cast<size_t>(copy);
      std::vector<Exl3Part> parts;
      std::vector<Exl3Rotation> rotations;
      int64_t column = 0;
      for (size_t i = 0; i < group.n.size(); ++i) {
        void* xh = static_cast<char*>(b.xh) + i * Exl3RotatedBytes(count, group.k);
        const Exl3DeviceLayer layer{trellis + group.k * column / 64 * rate.k2, b.scales, nullptr,
                                    group.k, group.n[i]};
        parts.push_back(MakeExl3Part(layer, xh, 0, group.n[i], b.y + count * column, group.n[i]));
        if (plan != nullptr) parts.back().plan = *plan;
        rotations.push_back({b.scales, xh, 1});
        column += group.n[i];
      }
      if (Exl3PartialsBytes(parts, count) > kPartialBytes) error = cudaErrorMemoryAllocation;
      if (error == cudaSuccess) {
        error = LaunchExl3Rotations(b.x, count, group.k, group.k, rotations, b.overflow, b.stream);
      }
      if (error == cudaSuccess) {
        error = LaunchExl3Linear(rate, parts, count, {b.partials, b.counters}, b.stream);
      }
    }
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(b.stream, &graph);
    TRY(Check(error, "launch"));
    TRY(Check(ended, "capture"));
    cudaGraphExec_t replay = nullptr;
    TRY(Check(cudaGraphInstantiate(&replay, graph, 0), "cudaGraphInstantiate"));
    std::vector<float> samples;
    for (int i = 0; i < kReplays + 2; ++i) {
      cudaEventRecord(b.begin, b.stream);
      cudaGraphLaunch(replay, b.stream);
      cudaEventRecord(b.end, b.stream);
      TRY(Check(cudaStreamSynchronize(b.stream), "replay"));
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, b.begin, b.end);
      if (i >= 2) samples.push_back(milliseconds);
    }
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    std::nth_element(samples.begin(), samples.begin() + kReplays / 2, samples.end());
    times.push_back({count, 1e3 * samples[kReplays / 2] / copies});
  }
  return times;
}

}  // namespace hallmark
