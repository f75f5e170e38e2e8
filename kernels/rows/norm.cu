// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/lane_sum.cuh"
#include "kernels/rows/norm.h"

namespace hallmark {
namespace {

constexpr int kThreads = 512;

// kOffset: what is added to a weight, 1 or nothing.
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
    const float factor = kOffset ? 1.0f + weight[i] : weight[i];
    to[i] = in[i] * r * factor;
  }
}

template <bool kOffset>
cudaError_t Launch(const float* x, int64_t rows, int64_t cols, const float* weight, float eps,
                   float* out, cudaStream_t stream) {
  if (rows < 0 || rows > INT32_MAX || cols < 1) return cudaErrorInvalidValue;
  if (rows == 0) return cudaSuccess;
  RmsNormKernel<kOffset>
      <<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, cols, weight, eps, out);
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

}  // namespace hallmark
