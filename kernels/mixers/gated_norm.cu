// SPDX-License-Identifier: Apache-2.0
#include "engine/base/elementary_inline.h"
#include "kernels/mixers/gated_norm.h"
#include "kernels/rows/lane_sum.cuh"

namespace hallmark {
namespace {

constexpr int kThreads = 128;
constexpr int kGroups = kThreads / kGroupLanes;

// Heads of one block of terms, the usual ones: everything is read at once.
__global__ void __launch_bounds__(kThreads)
    GatedNorm128Kernel(const float* o, const float* z, const float* __restrict__ weight,
                       int64_t heads, float eps, float* out) {
  constexpr int kTerms = static_cast<int>(kSumBlock) / kGroupLanes;
  const int64_t head = int64_t{1} * blockIdx.x * kGroups + GroupIndex();
  // A group past the end works on the last head and stores nothing: its warp folds together.
  const bool stores = head < heads;
  const int64_t at = (stores ? head : heads - 1) * kSumBlock + GroupLane();
  float value[kTerms];
  float gate[kTerms];
  float scale[kTerms];
#pragma unroll
  for (int t = 0; t < kTerms; ++t) {
    value[t] = o[at + t * kGroupLanes];
    gate[t] = z[at + t * kGroupLanes];
    scale[t] = weight[GroupLane() + t * kGroupLanes];
  }
  float partial = 0.0f;
#pragma unroll
  for (int t = 0; t < kTerms; ++t) partial += value[t] * value[t];
  const float sum =
      0.0f + FoldLanes(partial);  // the one block, added to zero like the first of many
  const float r = 1.0f / sqrtf(sum / static_cast<float>(kSumBlock) + eps);
  if (!stores) return;
#pragma unroll
  for (int t = 0; t < kTerms; ++t) {
    out[at + t * kGroupLanes] = value[t] * r * scale[t] * shared::Silu(gate[t]);
  }
}

__global__ void __launch_bounds__(kThreads)
    GatedNormKernel(const float* o, const float* z, const float* __restrict__ weight, int64_t heads,
                    int64_t head_dim, float eps, float* out) {
  const int64_t head = int64_t{1} * blockIdx.x * kGroups + GroupIndex();
  // A group past the end works on the last head and stores nothing: its warp folds together.
  const bool stores = head < heads;
  const int64_t at = (stores ? head : heads - 1) * head_dim;
  const int lane = GroupLane();
  const float* in = o + at;
  const float sum = GroupSum(head_dim, lane, [in](int64_t i) { return in[i] * in[i]; });
  const float r = 1.0f / sqrtf(sum / static_cast<float>(head_dim) + eps);
  if (!stores) return;
  for (int64_t i = lane; i < head_dim; i += kGroupLanes) {
    out[at + i] = in[i] * r * weight[i] * shared::Silu(z[at + i]);
  }
}

}  // namespace

cudaError_t LaunchGatedNorm(const float* o, const float* z, const float* weight, int64_t heads,
                            int64_t head_dim, float eps, float* out, cudaStream_t stream) {
  if (heads < 0 || heads > INT32_MAX || head_dim < 1) return cudaErrorInvalidValue;
  if (heads == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((heads + kGroups - 1) / kGroups);
  if (head_dim == kSumBlock) {
    GatedNorm128Kernel<<<blocks, kThreads, 0, stream>>>(o, z, weight, heads, eps, out);
  } else {
    GatedNormKernel<<<blocks, kThreads, 0, stream>>>(o, z, weight, heads, head_dim, eps, out);
  }
  return cudaGetLastError();
}

}  // namespace hallmark
