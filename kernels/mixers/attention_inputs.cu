// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp8.h>

#include "engine/base/elementary_inline.h"
#include "engine/base/float_types.h"
#include "kernels/mixers/attention_inputs.h"

namespace hallmark {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 8;
constexpr int kSumBlock = 128;
constexpr int kSumLanes = 16;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// Sum of x^2 in the one order. Lanes 0-15 take the even blocks of 128, lanes 16-31 the odd ones;
// every lane returns the sum. All 32 lanes call.
__device__ float SumOfSquares(const float* x, int count, int lane) {
  const int blocks = count / kSumBlock;
  const int j = lane % kSumLanes;
  float total = 0.0f;
  for (int first = 0; first < blocks; first += 2) {
    const int block = first + lane / kSumLanes;
    float partial = 0.0f;
    if (block < blocks) {
      const float* terms = x + block * kSumBlock + j;
#pragma unroll
      for (int i = 0; i < kSumBlock / kSumLanes; ++i) {
        const float value = terms[i * kSumLanes];
        partial += value * value;
      }
    }
#pragma unroll
    for (int step = kSumLanes / 2; step > 0; step /= 2) {
      // Lanes below `step` hold what counts; the others add what nobody reads.
      partial = partial + __shfl_down_sync(kAllLanes, partial, step, kSumLanes);
    }
    total += __shfl_sync(kAllLanes, partial, 0);
    if (first + 1 < blocks) total += __shfl_sync(kAllLanes, partial, kSumLanes);
  }
  return total;
}

// emit(d, value) for every channel of norm and rope of one head; `turns` [rotary_dim / 2].
template <typename Emit>
__device__ void NormAndRotate(const float* x, const float* weight, const float2* turns,
                              int head_dim, int rotary_dim, float eps, int lane, const Emit& emit) {
  const float sum = SumOfSquares(x, head_dim, lane);
  const float r = 1.0f / sqrtf(sum / static_cast<float>(head_dim) + eps);
  const int half = rotary_dim / 2;
  auto norm = [&](int d) { return x[d] * r * (1.0f + weight[d]); };
  for (int d = lane; d < head_dim; d += kWarp) {
    if (d < half) {  // this lane turns the pair (d, d + half)
      const float2 turn = turns[d];
      const float a = norm(d);
      const float b = norm(d + half);
      emit(d, a * turn.x - b * turn.y);
      emit(d + half, b * turn.x + a * turn.y);
    } else if (d >= rotary_dim) {
      emit(d, norm(d));
    }
  }
}

template <KvFormat format>
__device__ void Store(std::byte* place, int d, float value) {
  if constexpr (format == KvFormat::kBf16) {
    reinterpret_cast<uint16_t*>(place)[d] = FloatToBf16(value);
  } else {
    reinterpret_cast<__nv_fp8_storage_t*>(place)[d] =
        __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
  }
}

// Grid (rows, units in groups of kWarpsPerBlock): a row's units are its query heads, its keys and
// its values, one warp each.
template <KvFormat format>
__global__ void __launch_bounds__(kWarpsPerBlock* kWarp)
    AttentionInputsKernel(AttentionShape shape, AttentionInputWeights weights, KvPlace kv,
                          const float* q_gate, const float* k, const float* v, float* q) {
  extern __shared__ float2 turns[];  // (cos, sin) [rotary_dim / 2]
  const int64_t row = blockIdx.x;
  const int64_t at = *kv.position + row;
  for (int d = threadIdx.x; d < weights.rotary_dim / 2; d += blockDim.x) {
    const SinCosPair turn = shared::SinCos(static_cast<float>(at) * weights.inv_freq[d]);
    turns[d] = make_float2(turn.cos, turn.sin);
  }
  __syncthreads();

  const int lane = threadIdx.x % kWarp;
  int unit = blockIdx.y * kWarpsPerBlock + threadIdx.x / kWarp;
  const int64_t dim = shape.head_dim;
  if (unit < shape.heads) {
    float* out = q + (row * shape.heads + unit) * dim;
    NormAndRotate(q_gate + (row * shape.heads + unit) * 2 * dim, weights.q_norm, turns,
                  shape.head_dim, weights.rotary_dim, weights.eps, lane,
                  [&](int d, float value) { out[d] = RoundToBf16(value); });
    return;
  }
  unit -= shape.heads;
  if (unit >= 2 * shape.kv_heads) return;
  const bool is_value = unit >= shape.kv_heads;
  const int head = is_value ? unit - shape.kv_heads : unit;
  const int64_t slot = (is_value ? kPagePositions : 0) + at % kPagePositions;
  constexpr int64_t kSize = format == KvFormat::kBf16 ? 2 : 1;
  std::byte* place =
      kv.pages[at / kPagePositions] + kv.offset + (slot * shape.kv_heads + head) * dim * kSize;
  const float* x = (is_value ? v : k) + (row * shape.kv_heads + head) * dim;
  if (is_value) {
    for (int d = lane; d < shape.head_dim; d += kWarp) Store<format>(place, d, x[d]);
  } else {
    NormAndRotate(x, weights.k_norm, turns, shape.head_dim, weights.rotary_dim, weights.eps, lane,
                  [&](int d, float value) { Store<format>(place, d, value); });
  }
}

}  // namespace

cudaError_t LaunchAttentionInputs(const AttentionShape& shape, KvFormat format,
                                  const AttentionInputWeights& weights, const KvPlace& kv,
                                  int64_t rows, const float* q_gate, const float* k, const float* v,
                                  float* q, cudaStream_t stream) {
  constexpr int kMaxHeadDim = 4096;  // the angles' shared memory: 16 KiB
  constexpr int kMaxHeads = 1 << 16;
  constexpr int64_t kMaxRows = INT32_MAX;
  if (shape.kv_heads < 1 || shape.heads < 1 || shape.heads > kMaxHeads ||
      shape.heads % shape.kv_heads != 0 || shape.head_dim < kSumBlock ||
      shape.head_dim > kMaxHeadDim || shape.head_dim % kSumBlock != 0 || weights.rotary_dim < 2 ||
      weights.rotary_dim % 2 != 0 || weights.rotary_dim > shape.head_dim || rows < 0 ||
      rows > kMaxRows) {
    return cudaErrorInvalidValue;
  }
  if (rows == 0) return cudaSuccess;
  const int units = shape.heads + 2 * shape.kv_heads;
  const dim3 grid(static_cast<unsigned>(rows),
                  static_cast<unsigned>((units + kWarpsPerBlock - 1) / kWarpsPerBlock));
  const size_t bytes = static_cast<size_t>(weights.rotary_dim / 2) * sizeof(float2);
  const auto kernel = format == KvFormat::kBf16 ? &AttentionInputsKernel<KvFormat::kBf16>
                                                : &AttentionInputsKernel<KvFormat::kFp8E4m3>;
  kernel<<<grid, kWarpsPerBlock * kWarp, bytes, stream>>>(shape, weights, kv, q_gate, k, v, q);
  return cudaGetLastError();
}

}  // namespace hallmark
