// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/lane_sum.cuh"
#include "kernels/rows/norm.h"

namespace hallmark {
namespace {

constexpr int kThreads = 512;
// Rows up to this width stay in registers, one block of 128 terms a group of lanes.
constexpr int kWideGroups = 64;
constexpr int64_t kRegisterCols = kWideGroups * kSumBlock;
constexpr int kTermsPerLane = static_cast<int>(kSumBlock) / kGroupLanes;

// kOffset: what is added to a weight, 1 or nothing.
template <bool kOffset>
__device__ __forceinline__ float Factor(float weight) {
  return kOffset ? 1.0f + weight : weight;
}

template <bool kOffset>
__global__ void __launch_bounds__(kThreads)
    RmsNormKernel(const float* x, int64_t cols, const float* __restrict__ weight, float eps,
                  float* out) {
  __shared__ float sums[kBlockSums];
  const float* in = x + blockIdx.x * cols;
  float* to = out + blockIdx.x * cols;
  const float sum = ThreadBlockSum(cols, sums, [in](int64_t i) { return in[i] * in[i]; });
  const float r = 1.0f / sqrtf(sum / static_cast<float>(cols) + eps);
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) {
    to[i] = in[i] * r * Factor<kOffset>(weight[i]);
  }
}

// The same sums with all of the row read at once: group g of 16 lanes has block g. kAdd: x += y
// comes first.
template <bool kOffset, bool kAdd>
__global__ void __launch_bounds__(kWideGroups* kGroupLanes)
    RegisterNormKernel(float* x, const float* y, int cols, const float* __restrict__ weight,
                       float eps, float* out) {
  __shared__ float sums[kWideGroups];
  const int64_t row = int64_t{1} * blockIdx.x * cols;
  const int first = GroupIndex() * static_cast<int>(kSumBlock) + GroupLane();
  float value[kTermsPerLane] = {};
  float scale[kTermsPerLane] = {};
#pragma unroll
  for (int t = 0; t < kTermsPerLane; ++t) {
    const int i = first + t * kGroupLanes;
    if (i >= cols) continue;
    value[t] = x[row + i];
    if constexpr (kAdd) value[t] += y[row + i];
    scale[t] = weight[i];
  }
  float partial = 0.0f;  // zeros past the end change no partial
#pragma unroll
  for (int t = 0; t < kTermsPerLane; ++t) partial += value[t] * value[t];
  const float folded = FoldLanes(partial);
  if (GroupLane() == 0) sums[GroupIndex()] = folded;
  __syncthreads();
  const int blocks = (cols + static_cast<int>(kSumBlock) - 1) / static_cast<int>(kSumBlock);
  float sum = 0.0f;
#pragma unroll 8
  for (int i = 0; i < blocks; ++i) sum += sums[i];
  const float r = 1.0f / sqrtf(sum / static_cast<float>(cols) + eps);
#pragma unroll
  for (int t = 0; t < kTermsPerLane; ++t) {
    const int i = first + t * kGroupLanes;
    if (i >= cols) continue;
    if constexpr (kAdd) x[row + i] = value[t];
    out[row + i] = value[t] * r * Factor<kOffset>(scale[t]);
  }
}

template <bool kOffset, bool kAdd>
void LaunchInRegisters(float* x, const float* y, int64_t rows, int64_t cols, const float* weight,
                       float eps, float* out, cudaStream_t stream) {
  const int64_t blocks = (cols + kSumBlock - 1) / kSumBlock;
  const auto threads = static_cast<unsigned>((blocks + 1) / 2 * 2 * kGroupLanes);
  RegisterNormKernel<kOffset, kAdd><<<static_cast<unsigned>(rows), threads, 0, stream>>>(
      x, y, static_cast<int>(cols), weight, eps, out);
}

template <bool kOffset>
cudaError_t Launch(const float* x, int64_t rows, int64_t cols, const float* weight, float eps,
                   float* out, cudaStream_t stream) {
  if (rows < 0 || rows > INT32_MAX || cols < 1) return cudaErrorInvalidValue;
  if (rows == 0) return cudaSuccess;
  if (cols <= kRegisterCols) {
    // Without kAdd nothing is written to x.
    LaunchInRegisters<kOffset, false>(const_cast<float*>(x), nullptr, rows, cols, weight, eps, out,
                                      stream);
  } else {
    RmsNormKernel<kOffset>
        <<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, cols, weight, eps, out);
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchRmsNorm(const float* x, int64_t rows, int64_t cols, const float* weight,
                          float eps, float* out, cudaStream_t stream) {
  return Launch<true>(x, rows, cols, weight, eps, out, stream);
}

cudaError_t LaunchPlainRmsNorm(const float* x, int64_t rows, int64_t cols, const float* weight,
                               float eps, float* out, cudaStream_t stream) {
  return Launch<false>(x, rows, cols, weight, eps, out, stream);
}

cudaError_t LaunchAddRmsNorm(float* x, const float* y, int64_t rows, int64_t cols,
                             const float* weight, float eps, float* out, cudaStream_t stream) {
  if (rows < 0 || rows > INT32_MAX || cols < 1 || cols > kMostAddNormCols) {
    return cudaErrorInvalidValue;
  }
  static_assert(kMostAddNormCols == kRegisterCols);
  if (rows == 0) return cudaSuccess;
  LaunchInRegisters<true, true>(x, y, rows, cols, weight, eps, out, stream);
  return cudaGetLastError();
}

}  // namespace hallmark
