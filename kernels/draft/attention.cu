// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engine/base/elementary_inline.h"
#include "kernels/draft/attention.h"
#include "kernels/rows/block_tile.cuh"

namespace hallmark {
namespace {

// The keys of a call are numbered from the first that any row sees: the context's, then the
// block's own.
struct Keys {
  DraftAttentionShape shape;
  DraftContextPages context;
  const float* k;  // of the block
  const float* v;
  int64_t rows;
  int64_t skipped;  // context positions before key 0
  int64_t old;      // keys of the context
  int64_t count;    // old + rows

  __device__ int64_t Width() const { return int64_t{1} * shape.kv_heads * shape.head_dim; }

  // The channels of one kv head, of K (or of V).
  __device__ const float* At(bool value, int64_t key, int kv_head) const {
    const int64_t offset = int64_t{1} * kv_head * shape.head_dim;
    if (key >= old) return (value ? v : k) + (key - old) * Width() + offset;
    const int64_t at = skipped + key;
    const float* page = context.pages[at / context.page_rows];
    const int64_t row = at % context.page_rows + (value ? context.page_rows : 0);
    return page + row * Width() + offset;
  }

  // A row sees keys First(row) .. End(row) - 1, without a gap.
  __device__ int64_t First(int64_t row) const {
    return shape.window == 0 ? 0 : max(int64_t{0}, old + row - shape.window + 1);
  }
  __device__ int64_t End(int64_t row) const {
    const int64_t end = old + (shape.causal ? row + 1 : rows);
    return shape.window == 0 ? end : min(end, old + row + shape.window);
  }
};

constexpr int kScoreThreads = 256;
constexpr int kTileQueries = 8;
constexpr int kGroupKeys = 4;
constexpr int kTileKeys = kScoreThreads / kGroupLanes * kGroupKeys;

// Grid (tiles of keys, kv heads): every query of the kv head, in tiles, against the same keys.
// scores [rows, heads, keys]. Keys that a row does not see get a score too; nobody reads it.
__global__ void __launch_bounds__(kScoreThreads, 2)
    DraftScoresKernel(Keys keys, const float* __restrict__ q, float scale, float* scores) {
  const int lane = GroupLane();
  const int kv_head = static_cast<int>(blockIdx.y);
  const DraftAttentionShape& shape = keys.shape;
  const int per_kv_head = shape.heads / shape.kv_heads;
  const int queries = static_cast<int>(keys.rows) * per_kv_head;
  const int64_t first_key = int64_t{1} * blockIdx.x * kTileKeys + GroupIndex() * kGroupKeys;
  // Keys and queries past the end read the last one; nobody stores their scores.
  const float* key[kGroupKeys];
#pragma unroll
  for (int c = 0; c < kGroupKeys; ++c) {
    key[c] = keys.At(false, min(first_key + c, keys.count - 1), kv_head);
  }
  // Where a query's row of heads or scores begins: row * heads + head.
  const auto query_at = [&](int query) {
    return static_cast<int64_t>(query / per_kv_head * shape.heads) + kv_head * per_kv_head +
           query % per_kv_head;
  };
  constexpr int kSums = kTileQueries * kGroupKeys;
  constexpr int kOwn = kFoldedPerLane<kSums>;
  for (int first_query = 0; first_query < queries; first_query += kTileQueries) {
    const float* in[kTileQueries];
#pragma unroll
    for (int r = 0; r < kTileQueries; ++r) {
      in[r] = q + query_at(min(first_query + r, queries - 1)) * shape.head_dim;
    }
    float total[kOwn] = {};
    for (int start = 0; start < shape.head_dim; start += kSumBlock) {
      const int terms = min(shape.head_dim - start, static_cast<int>(kSumBlock));
      float sums[kSums];
      BlockTile<kTileQueries, kGroupKeys, kSumBlock>(
          lane, terms, [&](int r, int i) { return in[r][start + i]; },
          [&](int c, int i) { return key[c][start + i]; }, sums);
#pragma unroll
      for (int i = 0; i < kOwn; ++i) total[i] += sums[i];
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int sum = FirstFolded<kSums>(lane) + i;
      const int query = first_query + sum % kTileQueries;
      const int64_t at = first_key + sum / kTileQueries;
      if (query < queries && at < keys.count) {
        scores[query_at(query) * keys.count + at] = total[i] * scale;
      }
    }
  }
}

constexpr int kSoftmaxThreads = 512;

// Grid: rows * heads. scores <- exp(score - max) of the keys that the row sees; sums [rows, heads].
__global__ void __launch_bounds__(kSoftmaxThreads)
    DraftSoftmaxKernel(Keys keys, float* scores, float* sums) {
  __shared__ float warps[kSoftmaxThreads / kWarpLanes];
  __shared__ float blocks[kBlockSums];
  const int64_t row = blockIdx.x / keys.shape.heads;
  const int64_t first = keys.First(row);
  const int64_t count = keys.End(row) - first;
  float* own = scores + blockIdx.x * keys.count + first;
  float highest = own[0];
  for (int64_t t = threadIdx.x; t < count; t += kSoftmaxThreads) highest = fmaxf(highest, own[t]);
  for (int step = kWarpLanes / 2; step > 0; step /= 2) {
    highest = fmaxf(highest, __shfl_xor_sync(kWholeWarp, highest, step));
  }
  if (threadIdx.x % kWarpLanes == 0) warps[threadIdx.x / kWarpLanes] = highest;
  __syncthreads();
  for (const float other : warps) highest = fmaxf(highest, other);
  for (int64_t t = threadIdx.x; t < count; t += kSoftmaxThreads) {
    own[t] = shared::Exp(own[t] - highest);
  }
  __syncthreads();
  const float sum = ThreadBlockSum(count, blocks, [own](int64_t t) { return own[t]; });
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

constexpr int kValueThreads = 128;  // channels of a block of threads
constexpr int kValueHeads = 4;      // query heads that share one read of a value
constexpr int kStagedKeys = 64;

// Grid (rows * kv heads, query heads of a kv head in tiles, channels in tiles).
__global__ void __launch_bounds__(kValueThreads)
    DraftValuesKernel(Keys keys, const float* __restrict__ scores, const float* __restrict__ sums,
                      float* __restrict__ out) {
  __shared__ float4 weights[kStagedKeys];
  __shared__ const float* values[kStagedKeys];
  const DraftAttentionShape& shape = keys.shape;
  const int per_kv_head = shape.heads / shape.kv_heads;
  const int64_t row = blockIdx.x / shape.kv_heads;
  const int kv_head = static_cast<int>(blockIdx.x % shape.kv_heads);
  const int tile = static_cast<int>(blockIdx.y) * kValueHeads;
  const int heads = min(kValueHeads, per_kv_head - tile);
  const int64_t first_head = row * shape.heads + kv_head * per_kv_head + tile;
  const int channel = static_cast<int>(blockIdx.z) * kValueThreads + threadIdx.x;
  const bool owns = channel < shape.head_dim;

  const int64_t end = keys.End(row);
  float sum[kValueHeads] = {};
  for (int64_t first = keys.First(row); first < end; first += kStagedKeys) {
    const int staged = static_cast<int>(min(end - first, int64_t{kStagedKeys}));
    __syncthreads();  // the keys before are used up
    for (int i = threadIdx.x; i < kStagedKeys * kValueHeads; i += kValueThreads) {
      const int t = i % kStagedKeys;
      const int head = i / kStagedKeys;
      if (t >= staged) continue;
      const bool exists = head < heads;
      reinterpret_cast<float*>(weights + t)[head] =
          exists ? scores[(first_head + head) * keys.count + first + t] : 0.0f;
      if (head == 0) values[t] = keys.At(true, first + t, kv_head);
    }
    __syncthreads();
    if (!owns) continue;
#pragma unroll 8
    for (int t = 0; t < staged; ++t) {
      const float value = values[t][channel];
      const float4 p = weights[t];
      sum[0] += p.x * value;
      sum[1] += p.y * value;
      sum[2] += p.z * value;
      sum[3] += p.w * value;
    }
  }
  if (!owns) return;
#pragma unroll
  for (int head = 0; head < kValueHeads; ++head) {
    if (head < heads) {
      const int64_t at = first_head + head;
      out[at * shape.head_dim + channel] = sum[head] / sums[at];
    }
  }
}

}  // namespace

cudaError_t LaunchDraftAttention(const DraftAttentionShape& shape, const DraftContextPages& context,
                                 const float* q, const float* k, const float* v, int64_t rows,
                                 float* scratch, float* out, cudaStream_t stream) {
  constexpr int kMaxGrid = 65535;
  constexpr int64_t kMaxKeys = int64_t{1} << 30;
  constexpr int64_t kMaxWindow = int64_t{1} << 62;
  if (shape.heads < 1 || shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0 ||
      shape.heads > kMaxGrid || shape.head_dim < 1 || shape.head_dim > kMaxGrid * kValueThreads ||
      shape.window < 0 || shape.window > kMaxWindow || rows < 0 || rows > kMaxGrid ||
      rows * shape.heads > INT32_MAX || context.first_position < 0 ||
      context.end < context.first_position || context.end - context.first_position > kMaxKeys ||
      (context.end > context.first_position && context.page_rows < 1)) {
    return cudaErrorInvalidValue;
  }
  if (rows == 0) return cudaSuccess;
  const int64_t seen = DraftFirstSeen(shape, context);
  const int64_t old = context.end - seen;
  const Keys keys{shape, context, k, v, rows, seen - context.first_position, old, old + rows};
  float* scores = scratch;
  float* sums = scratch + rows * shape.heads * keys.count;
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  const auto tiles = [](int64_t count, int64_t tile) {
    return static_cast<unsigned>((count + tile - 1) / tile);
  };
  DraftScoresKernel<<<dim3(tiles(keys.count, kTileKeys), static_cast<unsigned>(shape.kv_heads)),
                      kScoreThreads, 0, stream>>>(keys, q, scale, scores);
  DraftSoftmaxKernel<<<static_cast<unsigned>(rows * shape.heads), kSoftmaxThreads, 0, stream>>>(
      keys, scores, sums);
  const dim3 grid(static_cast<unsigned>(rows * shape.kv_heads),
                  tiles(shape.heads / shape.kv_heads, kValueHeads),
                  tiles(shape.head_dim, kValueThreads));
  DraftValuesKernel<<<grid, kValueThreads, 0, stream>>>(keys, scores, sums, out);
  return cudaGetLastError();
}

}  // namespace hallmark
