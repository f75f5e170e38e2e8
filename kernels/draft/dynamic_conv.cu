// SPDX-License-Identifier: Apache-2.0
#include "kernels/draft/dynamic_conv.h"

namespace hallmark {
namespace {

constexpr int kThreads = 256;

// Grid (rows, channels in tiles of kThreads).
__global__ void __launch_bounds__(kThreads)
    DynamicConvKernel(DynamicConvShape shape, const float* __restrict__ base,
                      const float* __restrict__ dyn, const float* __restrict__ x, int64_t channels,
                      float* __restrict__ out) {
  const int64_t row = blockIdx.x;
  const int64_t channel = int64_t{1} * blockIdx.y * kThreads + threadIdx.x;
  if (channel >= channels) return;
  const int64_t groups = channels / shape.group;
  const float* coefficient =
      dyn + (2 * row + shape.side) * shape.kernel * groups + channel / shape.group;
  const int64_t taps = min(shape.kernel, row % shape.block_rows + 1);
  float sum = 0.0f;
  for (int64_t t = 0; t < taps; ++t) {
    sum += (base[t * channels + channel] + coefficient[t * groups]) *
           x[(row - t) * channels + channel];
  }
  out[row * channels + channel] = sum;
}

}  // namespace

cudaError_t LaunchDynamicConv(const DynamicConvShape& shape, const float* base, const float* dyn,
                              const float* x, int64_t rows, int64_t channels, float* out,
                              cudaStream_t stream) {
  constexpr int64_t kMaxTiles = 65535;
  const int64_t tiles = (channels + kThreads - 1) / kThreads;
  if (rows < 0 || rows > INT32_MAX || channels < 1 || tiles > kMaxTiles || shape.kernel < 1 ||
      shape.group < 1 || channels % shape.group != 0 || shape.block_rows < 1 || shape.side < 0 ||
      shape.side > 1) {
    return cudaErrorInvalidValue;
  }
  if (rows == 0) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>(rows), static_cast<unsigned>(tiles));
  DynamicConvKernel<<<grid, kThreads, 0, stream>>>(shape, base, dyn, x, channels, out);
  return cudaGetLastError();
}

}  // namespace hallmark
