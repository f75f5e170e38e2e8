// SPDX-License-Identifier: Apache-2.0
#include "engine/base/elementary_inline.h"
#include "kernels/draft/heads.h"
#include "kernels/rows/lane_sum.cuh"

namespace hallmark {
namespace {

constexpr int kThreads = 128;
constexpr int kGroups = kThreads / kGroupLanes;

__global__ void __launch_bounds__(kThreads)
    DraftHeadsKernel(DraftHeadShape shape, const float* __restrict__ weight,
                     const float* __restrict__ inv_freq, int64_t position, const float* x,
                     int64_t units, float* out) {
  const int64_t unit = int64_t{1} * blockIdx.x * kGroups + GroupIndex();  // row * heads + head
  // A group past the end works on the last head and stores nothing: its warp folds together.
  const bool stores = unit < units;
  const int64_t own = stores ? unit : units - 1;
  const int lane = GroupLane();
  const float* in = x + own * shape.head_dim;
  const float sum = GroupSum(shape.head_dim, lane, [in](int64_t i) { return in[i] * in[i]; });
  const float r = 1.0f / sqrtf(sum / static_cast<float>(shape.head_dim) + shape.eps);
  if (!stores) return;
  float* to = out + own * shape.head_dim;
  const float at = static_cast<float>(position + own / shape.heads);
  const int half = shape.head_dim / 2;
  for (int d = lane; d < half; d += kGroupLanes) {
    const SinCosPair turn = shared::SinCos(at * inv_freq[d]);
    const float a = in[d] * r * weight[d];
    const float b = in[d + half] * r * weight[d + half];
    to[d] = a * turn.cos - b * turn.sin;
    to[d + half] = b * turn.cos + a * turn.sin;
  }
}

}  // namespace

cudaError_t LaunchDraftHeads(const DraftHeadShape& shape, const float* weight,
                             const float* inv_freq, int64_t position, const float* x, int64_t rows,
                             float* out, cudaStream_t stream) {
  constexpr int64_t kMaxUnits = int64_t{1} << 33;
  if (shape.heads < 1 || shape.head_dim < 2 || shape.head_dim % 2 != 0 || position < 0 ||
      rows < 0 || rows > kMaxUnits / shape.heads) {
    return cudaErrorInvalidValue;
  }
  if (rows == 0) return cudaSuccess;
  const int64_t units = rows * shape.heads;
  const auto blocks = static_cast<unsigned>((units + kGroups - 1) / kGroups);
  DraftHeadsKernel<<<blocks, kThreads, 0, stream>>>(shape, weight, inv_freq, position, x, units,
                                                    out);
  return cudaGetLastError();
}

}  // namespace hallmark
