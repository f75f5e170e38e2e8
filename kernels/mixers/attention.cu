// SPDX-License-Identifier: Apache-2.0
#include "kernels/mixers/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/mixers/attention_chunks.cuh"

namespace hallmark {
namespace {

constexpr int64_t kMaxPositions = 1 << 24;
constexpr int kMergeBatch = 64;

struct MergeEnds {
  const float* q_gate = nullptr;
  float* out = nullptr;
  int chunks = 0;     // of the segment
  bool last = false;  // no segment follows: finish
};

// Grid (rows, heads), one thread a channel: folds the segment's chunks that the row sees into slot
// 0, or from the last segment writes the row's output.
template <int head_dim>
__global__ void __launch_bounds__(head_dim)
    AttentionMergeKernel(AttentionCall call, MergeEnds ends) {
  static_assert(head_dim >= kMergeBatch);
  __shared__ float chunk_max[kMergeBatch];
  __shared__ float chunk_sum[kMergeBatch];
  __shared__ float keep[kMergeBatch];
  __shared__ float add[kMergeBatch];
  const int d = static_cast<int>(threadIdx.x);
  const int64_t row = blockIdx.x;
  const int64_t vector = row * call.heads + blockIdx.y;
  const int64_t vectors = int64_t{call.rows} * call.heads;
  const int64_t seen = (*call.kv.position + row) / kAttentionChunkKeys + 1 - call.first_chunk;
  const int count = static_cast<int>(max(min(seen, int64_t{ends.chunks}), int64_t{0}));
  // With no barrier on its way, a thread must not write a total that others still read.
  if (count == 0 && !ends.last) return;

  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
  float value = 0.0f;
  if (call.first_chunk > 0) {
    max = call.partials.max[vector];
    sum = call.partials.sum[vector];
    value = call.partials.values[vector * head_dim + d];
  }
  for (int first = 0; first < count; first += kMergeBatch) {
    const int batch = min(kMergeBatch, count - first);
    const int64_t place = (int64_t{1} + first) * vectors + vector;  // of the batch's first chunk
    if (d < batch) {
      chunk_max[d] = call.partials.max[place + d * vectors];
      chunk_sum[d] = call.partials.sum[place + d * vectors];
    }
    __syncthreads();
    if (d < batch) {
      float before = max;
#pragma unroll 1
      for (int i = 0; i < d; ++i) before = fmaxf(before, chunk_max[i]);
      const float after = fmaxf(before, chunk_max[d]);
      keep[d] = shared::Exp(before - after);  // 0 for the first chunk
      add[d] = shared::Exp(chunk_max[d] - after);
    }
    __syncthreads();
    const float* chunk_value = call.partials.values + place * head_dim + d;
    const int64_t stride = vectors * head_dim;
#pragma unroll 4
    for (int i = 0; i < batch; ++i) {
      max = fmaxf(max, chunk_max[i]);
      sum = sum * keep[i] + chunk_sum[i] * add[i];
      value = value * keep[i] + *chunk_value * add[i];
      chunk_value += stride;
    }
    __syncthreads();
  }
  if (ends.last) {
    const float gate = ends.q_gate[(2 * vector + 1) * head_dim + d];
    ends.out[vector * head_dim + d] = value / sum * shared::Sigmoid(gate);
    return;
  }
  call.partials.values[vector * head_dim + d] = value;
  if (d == 0) {
    call.partials.max[vector] = max;
    call.partials.sum[vector] = sum;
  }
}

template <int head_dim, KvFormat format, int tiles>
cudaError_t LaunchChunks(const AttentionCall& call, int chunks, cudaStream_t stream) {
  using Layout = AttentionChunkLayout<head_dim, tiles>;
  const auto kernel = &AttentionChunksKernel<head_dim, format, tiles>;
  const cudaError_t error =
      cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                           cudaFuncAttributeMaxDynamicSharedMemorySize, Layout::kBytes);
  if (error != cudaSuccess) return error;
  const int vectors = call.rows * (call.heads / call.kv_heads);
  const dim3 grid(static_cast<unsigned>((vectors + Layout::kVectors - 1) / Layout::kVectors),
                  static_cast<unsigned>(call.kv_heads), static_cast<unsigned>(chunks));
  kernel<<<grid, kAttentionThreads, Layout::kBytes, stream>>>(call);
  return cudaGetLastError();
}

// Few query vectors: one tile of 16, so that less of a block is idle. The bits are the same.
template <int head_dim, KvFormat format>
cudaError_t LaunchChunksOfAnyRows(const AttentionCall& call, int chunks, cudaStream_t stream) {
  constexpr int kTiles = 3;  // the most that fit beside head_dim 256; 8 rows of 6 heads each
  return call.rows * (call.heads / call.kv_heads) <= 16
             ? LaunchChunks<head_dim, format, 1>(call, chunks, stream)
             : LaunchChunks<head_dim, format, kTiles>(call, chunks, stream);
}

template <int head_dim>
cudaError_t LaunchSegments(AttentionCall call, KvFormat format, int64_t all,
                           int64_t chunks_per_segment, MergeEnds ends, cudaStream_t stream) {
  for (int64_t first = 0; first < all; first += chunks_per_segment) {
    call.first_chunk = first;
    ends.chunks = static_cast<int>(std::min(chunks_per_segment, all - first));
    ends.last = first + ends.chunks == all;
    const cudaError_t error =
        format == KvFormat::kBf16
            ? LaunchChunksOfAnyRows<head_dim, KvFormat::kBf16>(call, ends.chunks, stream)
            : LaunchChunksOfAnyRows<head_dim, KvFormat::kFp8E4m3>(call, ends.chunks, stream);
    if (error != cudaSuccess) return error;
    const dim3 grid(static_cast<unsigned>(call.rows), static_cast<unsigned>(call.heads));
    AttentionMergeKernel<head_dim><<<grid, head_dim, 0, stream>>>(call, ends);
    const cudaError_t merged = cudaGetLastError();
    if (merged != cudaSuccess) return merged;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t LaunchAttention(const AttentionShape& shape, KvFormat format, const KvPlace& kv,
                            int64_t limit, int64_t rows, const float* q, const float* q_gate,
                            int64_t chunks_per_segment, void* workspace, size_t workspace_bytes,
                            float* out, cudaStream_t stream) {
  constexpr int kMaxHeads = 1024;  // a grid's y; and rows * heads stays below 2^31
  constexpr int64_t kMaxRows = 65536;
  if (shape.kv_heads < 1 || shape.heads < 1 || shape.heads > kMaxHeads ||
      shape.heads % shape.kv_heads != 0 || (shape.head_dim != 128 && shape.head_dim != 256) ||
      rows < 0 || rows > kMaxRows || limit < rows || limit > kMaxPositions ||
      chunks_per_segment < 1) {
    return cudaErrorInvalidValue;
  }
  if (rows == 0) return cudaSuccess;
  // More chunks a segment than the call has would not be used.
  const int64_t all = AttentionChunks(limit);
  const int64_t chunks = std::min(chunks_per_segment, all);
  if (workspace == nullptr ||
      workspace_bytes < AttentionWorkspaceBytes(rows, shape.heads, shape.head_dim, chunks)) {
    return cudaErrorInvalidValue;
  }
  const int64_t vectors = rows * shape.heads;
  AttentionCall call;
  call.partials.values = static_cast<float*>(workspace);
  call.partials.max = call.partials.values + (chunks + 1) * vectors * shape.head_dim;
  call.partials.sum = call.partials.max + (chunks + 1) * vectors;
  call.q = q;
  call.kv = kv;
  call.rows = static_cast<int>(rows);
  call.heads = shape.heads;
  call.kv_heads = shape.kv_heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  MergeEnds ends;
  ends.q_gate = q_gate;
  ends.out = out;
  return shape.head_dim == 128 ? LaunchSegments<128>(call, format, all, chunks, ends, stream)
                               : LaunchSegments<256>(call, format, all, chunks, ends, stream);
}

}  // namespace hallmark
