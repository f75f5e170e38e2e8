// SPDX-License-Identifier: Apache-2.0
#include "engine/base/elementary_inline.h"
#include "kernels/mixers/conv.h"

namespace hallmark {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kTileRows = 16;

// Row t of a channel's input: negative rows lie in the window.
template <int kTaps>
__device__ float Input(const float* x, const float* window, int64_t channels, int64_t t,
                       int64_t channel) {
  return t < 0 ? window[(kTaps - 1 + t) * channels + channel] : x[t * channels + channel];
}

// Reads all rows to keep before it writes one: the windows may be the same, and a short call keeps
// some of the old rows. A channel's window is this thread's alone.
template <int kTaps>
__device__ void KeepWindow(const float* x, int64_t rows, int64_t channels, const float* window_in,
                           float* window_out, int64_t channel) {
  float kept[kTaps - 1];
#pragma unroll
  for (int j = 0; j < kTaps - 1; ++j) {
    kept[j] = Input<kTaps>(x, window_in, channels, rows - (kTaps - 1) + j, channel);
  }
#pragma unroll
  for (int j = 0; j < kTaps - 1; ++j) window_out[j * channels + channel] = kept[j];
}

// Grid (channels, tiles of kTileRows rows). window_out is null unless there is one tile of rows.
template <int kTaps>
__global__ void __launch_bounds__(kThreads)
    ConvSiluKernel(const float* x, int64_t rows, int64_t channels, const float* weight,
                   const float* window_in, float* window_out, float* out) {
  const int64_t channel = int64_t{1} * blockIdx.x * kThreads + threadIdx.x;
  if (channel >= channels) return;
  const int64_t first = blockIdx.y * kTileRows;
  const int64_t end = min(first + kTileRows, rows);
  float w[kTaps];
#pragma unroll
  for (int j = 0; j < kTaps; ++j) w[j] = weight[channel * kTaps + j];
  float u[kTaps];  // the inputs under the taps, oldest first
#pragma unroll
  for (int j = 1; j < kTaps; ++j) {
    u[j] = Input<kTaps>(x, window_in, channels, first - kTaps + j, channel);
  }
  for (int64_t t = first; t < end; ++t) {
#pragma unroll
    for (int j = 1; j < kTaps; ++j) u[j - 1] = u[j];
    u[kTaps - 1] = x[t * channels + channel];
    float sum = w[0] * u[0];
#pragma unroll
    for (int j = 1; j < kTaps; ++j) sum += w[j] * u[j];
    out[t * channels + channel] = shared::Silu(sum);
  }
  if (window_out != nullptr) {
    KeepWindow<kTaps>(x, rows, channels, window_in, window_out, channel);
  }
}

template <int kTaps>
__global__ void __launch_bounds__(kThreads)
    ConvWindowKernel(const float* x, int64_t rows, int64_t channels, const float* window_in,
                     float* window_out) {
  const int64_t channel = int64_t{1} * blockIdx.x * kThreads + threadIdx.x;
  if (channel >= channels) return;
  KeepWindow<kTaps>(x, rows, channels, window_in, window_out, channel);
}

template <int kTaps>
cudaError_t Launch(const float* x, int64_t rows, int64_t channels, const float* weight,
                   const float* window_in, float* window_out, float* out, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((channels + kThreads - 1) / kThreads);
  const auto tiles = static_cast<unsigned>((rows + kTileRows - 1) / kTileRows);
  if (tiles > 0) {
    ConvSiluKernel<kTaps><<<dim3(blocks, tiles), kThreads, 0, stream>>>(
        x, rows, channels, weight, window_in, tiles == 1 ? window_out : nullptr, out);
  }
  // Other tiles may still read the old window, so it is replaced after all of them.
  if (tiles != 1 && window_out != nullptr) {
    ConvWindowKernel<kTaps>
        <<<blocks, kThreads, 0, stream>>>(x, rows, channels, window_in, window_out);
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchConvSilu(const float* x, int64_t rows, int64_t channels, const float* weight,
                           int taps, const float* window_in, float* window_out, float* out,
                           cudaStream_t stream) {
  constexpr int64_t kMaxRows = 1000000;
  if (rows < 0 || rows > kMaxRows || channels < 1 || channels > INT32_MAX) {
    return cudaErrorInvalidValue;
  }
  switch (taps) {
    case 2:
      return Launch<2>(x, rows, channels, weight, window_in, window_out, out, stream);
    case 3:
      return Launch<3>(x, rows, channels, weight, window_in, window_out, out, stream);
    case 4:
      return Launch<4>(x, rows, channels, weight, window_in, window_out, out, stream);
    case 5:
      return Launch<5>(x, rows, channels, weight, window_in, window_out, out, stream);
    case 6:
      return Launch<6>(x, rows, channels, weight, window_in, window_out, out, stream);
    case 7:
      return Launch<7>(x, rows, channels, weight, window_in, window_out, out, stream);
    case 8:
      return Launch<8>(x, rows, channels, weight, window_in, window_out, out, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace hallmark
