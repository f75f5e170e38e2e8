// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engine/base/elementary_inline.h"
#include "kernels/mixers/delta_net.h"
#include "kernels/rows/lane_sum.cuh"

namespace hallmark {
namespace {

constexpr int kDim = kDeltaNetHeadDim;
static_assert(kDim == kSumBlock);  // a sum over the key dimension is one block

constexpr int kPrepareThreads = 256;

// Scratch: q [rows, key_heads, 128], k the same, gates [rows, value_heads] of (decay, beta).
struct Prepared {
  float* q;
  float* k;
  float2* gates;
};
Prepared PreparedIn(float* scratch, const DeltaNetHeads& heads, int64_t rows) {
  const int64_t keys = rows * heads.key_heads * kDim;
  return {scratch, scratch + keys, reinterpret_cast<float2*>(scratch + 2 * keys)};
}

// A block of threads prepares one row: 16 lanes a head of q or k, a thread a gate.
__global__ void __launch_bounds__(kPrepareThreads)
    DeltaNetPrepareKernel(DeltaNetHeads heads, DeltaNetInputs in, float q_scale,
                          Prepared prepared) {
  const int64_t row = blockIdx.x;
  const int lane = GroupLane();
  const int units = 2 * heads.key_heads;  // q heads, then k heads: as they lie in qkv
  const float* x = in.qkv + row * (units + heads.value_heads) * kDim;
  constexpr int kGroups = kPrepareThreads / kGroupLanes;
  for (int first = GroupIndex() / 2 * 2; first < units; first += kGroups) {
    const int unit = first + GroupIndex() % 2;  // `units` is even
    const float* from = x + unit * kDim;
    float values[kDim / kGroupLanes];
    float partial = 0.0f;
#pragma unroll
    for (int t = 0; t < kDim / kGroupLanes; ++t) {
      values[t] = from[lane + t * kGroupLanes];
      partial += values[t] * values[t];
    }
    const float r = 1.0f / sqrtf(FoldLanes(partial) + 1e-6f);
    const bool is_key = unit >= heads.key_heads;
    const float scale = is_key ? 1.0f : q_scale;
    float* to = is_key ? prepared.k + (row * heads.key_heads + unit - heads.key_heads) * kDim
                       : prepared.q + (row * heads.key_heads + unit) * kDim;
#pragma unroll
    for (int t = 0; t < kDim / kGroupLanes; ++t) to[lane + t * kGroupLanes] = values[t] * r * scale;
  }
  for (int head = threadIdx.x; head < heads.value_heads; head += kPrepareThreads) {
    const int64_t at = row * heads.value_heads + head;
    const float g = -shared::Exp(in.a_log[head]) * shared::Softplus(in.a[at] + in.dt_bias[head]);
    prepared.gates[at] = make_float2(shared::Exp(g), shared::Sigmoid(in.b[at]));
  }
}

constexpr int kThreads = 128;
constexpr int kColumns = 4;  // state columns of a group of 16 lanes
constexpr int kBlockColumns = kThreads / kGroupLanes * kColumns;
constexpr int kKeyRows = kDim / kGroupLanes;  // key rows of a lane

// What a lane needs of one token, loaded one token ahead.
struct Token {
  float q[kKeyRows];
  float k[kKeyRows];
  float v;  // of the column whose folded sums this lane holds
  float2 gate;
};

// Grid (value heads, columns in tiles of kBlockColumns).
__global__ void __launch_bounds__(kThreads)
    DeltaNetKernel(DeltaNetHeads heads, const float* __restrict__ qkv, const float* __restrict__ q,
                   const float* __restrict__ k, const float2* __restrict__ gates, int64_t rows,
                   const float* state_in, float* state_out, float* __restrict__ out) {
  const int lane = GroupLane();
  const int head = static_cast<int>(blockIdx.x);
  const int column = static_cast<int>(blockIdx.y) * kBlockColumns + GroupIndex() * kColumns;
  const int own_column = column + FirstFolded<kColumns>(lane);
  const int64_t keys_width = int64_t{1} * heads.key_heads * kDim;
  const int64_t values_width = int64_t{1} * heads.value_heads * kDim;
  const int64_t key_at = int64_t{1} * head / (heads.value_heads / heads.key_heads) * kDim + lane;
  const int64_t value_at = int64_t{1} * head * kDim + own_column;

  // Two groups of a warp lie side by side: together they move whole sectors of 32 bytes.
  const int64_t state_at = (int64_t{1} * head * kDim + lane) * kDim + column;
  float s[kKeyRows][kColumns];
#pragma unroll
  for (int t = 0; t < kKeyRows; ++t) {
    const float4 four =
        *reinterpret_cast<const float4*>(state_in + state_at + t * kGroupLanes * kDim);
    s[t][0] = four.x;
    s[t][1] = four.y;
    s[t][2] = four.z;
    s[t][3] = four.w;
  }

  const auto load = [&](int64_t row) {
    Token token;
#pragma unroll
    for (int t = 0; t < kKeyRows; ++t) {
      token.q[t] = q[row * keys_width + key_at + t * kGroupLanes];
      token.k[t] = k[row * keys_width + key_at + t * kGroupLanes];
    }
    token.v = qkv[row * (2 * keys_width + values_width) + 2 * keys_width + value_at];
    token.gate = gates[row * heads.value_heads + head];
    return token;
  };
  Token next = load(0);
  for (int64_t row = 0; row < rows; ++row) {
    const Token token = next;
    if (row + 1 < rows) next = load(row + 1);
    float m[kColumns] = {};
#pragma unroll
    for (int t = 0; t < kKeyRows; ++t) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        s[t][c] *= token.gate.x;
        m[c] += s[t][c] * token.k[t];
      }
    }
    FoldScattered<kColumns>(m, lane);
    const float own_delta = token.gate.y * (token.v - m[0]);
    float o[kColumns] = {};
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const float delta =
          __shfl_sync(kWholeWarp, own_delta, c * (kGroupLanes / kColumns), kGroupLanes);
#pragma unroll
      for (int t = 0; t < kKeyRows; ++t) {
        s[t][c] += token.k[t] * delta;
        o[c] += s[t][c] * token.q[t];
      }
    }
    FoldScattered<kColumns>(o, lane);
    if (HoldsFolded<kColumns>(lane)) out[row * values_width + value_at] = o[0];
  }

  if (state_out == nullptr) return;
#pragma unroll
  for (int t = 0; t < kKeyRows; ++t) {
    *reinterpret_cast<float4*>(state_out + state_at + t * kGroupLanes * kDim) =
        make_float4(s[t][0], s[t][1], s[t][2], s[t][3]);
  }
}

bool IsAligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % sizeof(float4) == 0;
}

}  // namespace

cudaError_t LaunchDeltaNet(const DeltaNetHeads& heads, const DeltaNetInputs& inputs, int64_t rows,
                           const float* state_in, float* state_out, float* scratch, float* out,
                           cudaStream_t stream) {
  constexpr int kMaxHeads = 1 << 16;
  if (heads.key_heads < 1 || heads.value_heads < 1 || heads.value_heads > kMaxHeads ||
      heads.value_heads % heads.key_heads != 0 || rows < 0 || rows > INT32_MAX ||
      !IsAligned(state_in) || !IsAligned(state_out) || !IsAligned(scratch)) {
    return cudaErrorInvalidValue;
  }
  if (rows == 0) {
    if (state_out == nullptr || state_out == state_in) return cudaSuccess;
    const size_t bytes = sizeof(float) * static_cast<size_t>(heads.value_heads) * kDim * kDim;
    return cudaMemcpyAsync(state_out, state_in, bytes, cudaMemcpyDeviceToDevice, stream);
  }
  const Prepared prepared = PreparedIn(scratch, heads, rows);
  const float q_scale = 1.0f / std::sqrt(static_cast<float>(kDim));
  DeltaNetPrepareKernel<<<static_cast<unsigned>(rows), kPrepareThreads, 0, stream>>>(
      heads, inputs, q_scale, prepared);
  const dim3 grid(static_cast<unsigned>(heads.value_heads), kDim / kBlockColumns);
  DeltaNetKernel<<<grid, kThreads, 0, stream>>>(heads, inputs.qkv, prepared.q, prepared.k,
                                                prepared.gates, rows, state_in, state_out, out);
  return cudaGetLastError();
}

}  // namespace hallmark
