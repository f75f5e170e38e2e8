// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/base/elementary_inline.h"
#include "kernels/rows/pointwise.h"

namespace hallmark {
namespace {

constexpr int kThreads = 256;

// run(i) for every i below count.
template <typename Run>
__device__ void ForEach(int64_t count, const Run& run) {
  const int64_t step = int64_t{1} * gridDim.x * kThreads;
  for (int64_t i = int64_t{1} * blockIdx.x * kThreads + threadIdx.x; i < count; i += step) run(i);
}

unsigned BlocksFor(int64_t count) {
  constexpr int64_t kMaxBlocks = 1 << 16;
  return static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kMaxBlocks));
}

__global__ void __launch_bounds__(kThreads) AddKernel(float* x, const float* y, int64_t count) {
  ForEach(count, [=](int64_t i) { x[i] += y[i]; });
}

__global__ void __launch_bounds__(kThreads)
    SwiGluKernel(const float* gate, const float* up, int64_t count, float* out) {
  ForEach(count, [=](int64_t i) { out[i] = shared::Silu(gate[i]) * up[i]; });
}

__global__ void __launch_bounds__(kThreads) ScaleKernel(float* x, int64_t count, float factor) {
  ForEach(count, [=](int64_t i) { x[i] *= factor; });
}

__device__ bool IsFinite(float value) {
  return (std::bit_cast<uint32_t>(value) & 0x7F800000u) != 0x7F800000u;
}

// tanh by e^(-2|x|), as the CPU backend has it.
__device__ float Tanh(float x) {
  const float e = shared::Exp(-2.0f * fabsf(x));
  const float value = (1.0f - e) / (1.0f + e);
  return x < 0.0f ? -value : value;
}

__global__ void __launch_bounds__(kThreads)
    ScaleLogitsKernel(float* logits, int64_t rows, int64_t cols, float multiplier, float softcap,
                      int32_t* first_bad) {
  ForEach(rows * cols, [=](int64_t i) {
    const float before = logits[i];
    const float scaled = before * multiplier;
    const float after = softcap == 0.0f ? scaled : softcap * Tanh(scaled / softcap);
    logits[i] = after;
    // A minimum does not depend on who arrives first.
    if (!IsFinite(before) || !IsFinite(after)) {
      atomicMin(first_bad, static_cast<int32_t>(i / cols));
    }
  });
}

}  // namespace

cudaError_t LaunchAdd(float* x, const float* y, int64_t count, cudaStream_t stream) {
  if (count < 0) return cudaErrorInvalidValue;
  if (count == 0) return cudaSuccess;
  AddKernel<<<BlocksFor(count), kThreads, 0, stream>>>(x, y, count);
  return cudaGetLastError();
}

cudaError_t LaunchSwiGlu(const float* gate, const float* up, int64_t count, float* out,
                         cudaStream_t stream) {
  if (count < 0) return cudaErrorInvalidValue;
  if (count == 0) return cudaSuccess;
  SwiGluKernel<<<BlocksFor(count), kThreads, 0, stream>>>(gate, up, count, out);
  return cudaGetLastError();
}

cudaError_t LaunchScale(float* x, int64_t count, float factor, cudaStream_t stream) {
  if (count < 0) return cudaErrorInvalidValue;
  if (count == 0) return cudaSuccess;
  ScaleKernel<<<BlocksFor(count), kThreads, 0, stream>>>(x, count, factor);
  return cudaGetLastError();
}

cudaError_t LaunchScaleLogits(float* logits, int64_t rows, int64_t cols, float multiplier,
                              float softcap, int32_t* first_bad, cudaStream_t stream) {
  if (rows < 0 || rows >= INT32_MAX || cols < 1) return cudaErrorInvalidValue;
  if (rows == 0) return cudaSuccess;
  ScaleLogitsKernel<<<BlocksFor(rows * cols), kThreads, 0, stream>>>(logits, rows, cols, multiplier,
                                                                     softcap, first_bad);
  return cudaGetLastError();
}

}  // namespace hallmark
