// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/mixer_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/backend/cpu/kv_page.h"
#include "engine/backend/cpu/ref/norm.h"
#include "engine/backend/cpu/ref/pointwise.h"
#include "engine/base/elementary.h"
#include "engine/base/float_types.h"

namespace hallmark {
namespace {

// A head of q_proj's output is [query | gate], head by head.
enum QGateHalf : int64_t { kQueryHalf = 0, kGateHalf = 1 };
const float* QGatePart(ConstRows q_gate, int64_t row, int64_t head, QGateHalf half, int64_t dim) {
  return q_gate.data + row * q_gate.cols + (2 * head + half) * dim;
}

// The wide loops take whole blocks of 128 channels; other sizes go through the definition.
const MixerLoops& LoopsFor(const MixerLoops& tier, int64_t a, int64_t b) {
  return a % 128 == 0 && b % 128 == 0 ? tier : kScalarMixerLoops;
}

// Rows that share one widening of a key tile. Any number gives the same bits.
constexpr int64_t kRowsPerTask = 32;

// The queries of one head in [first, first + rows) of a call, each with its two softmax states.
class HeadAttention {
 public:
  HeadAttention(const AttentionGeometry& geometry, const KvPages& kv, int head,
                const MixerLoops& loops)
      : geometry_(geometry),
        pages_(kv, geometry.kv_heads, geometry.head_dim),
        kv_head_(head / (geometry.heads / geometry.kv_heads)),
        loops_(loops),
        scale_(1.0f / std::sqrt(static_cast<float>(geometry.head_dim))) {}

  // query(i) is row i's query; result(i) receives softmax(q K^T) V.
  template <typename Query, typename Result>
  void Run(int64_t first_position, int64_t rows, const Query& query, const Result& result) {
    const int64_t dim = geometry_.head_dim;
    std::vector<float> storage(static_cast<size_t>(rows * 2 * dim));
    std::vector<SoftmaxState> chunk(static_cast<size_t>(rows));
    std::vector<SoftmaxState> total(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) {
      chunk[i].values = storage.data() + 2 * i * dim;
      total[i].values = storage.data() + (2 * i + 1) * dim;
      ResetSoftmax(total[i], dim);
    }
    std::vector<float> keys(static_cast<size_t>(kAttentionTile * dim));
    std::vector<float> values(static_cast<size_t>(kAttentionTile * dim));
    const int64_t end = first_position + rows;  // keys 0 .. end - 1 exist
    for (int64_t start = 0; start < end; start += kAttentionChunk) {
      const int64_t chunk_end = std::min(start + kAttentionChunk, end);
      for (int64_t i = 0; i < rows; ++i) ResetSoftmax(chunk[i], dim);
      for (int64_t tile = start; tile < chunk_end; tile += kAttentionTile) {
        const int64_t tile_end = std::min(tile + kAttentionTile, chunk_end);
        for (int64_t t = tile; t < tile_end; ++t) {
          pages_.Load(false, t, kv_head_, keys.data() + (t - tile) * dim);
          pages_.Load(true, t, kv_head_, values.data() + (t - tile) * dim);
        }
        for (int64_t i = 0; i < rows; ++i) {
          const int64_t seen = std::min(tile_end, first_position + i + 1) - tile;
          if (seen <= 0) continue;
          loops_.attention_tile(query(i), keys.data(), values.data(), seen, dim, scale_, chunk[i]);
        }
      }
      for (int64_t i = 0; i < rows; ++i) {
        if (first_position + i >= start) RefAttentionMerge(chunk[i], dim, total[i]);
      }
    }
    for (int64_t i = 0; i < rows; ++i) {
      float* out = result(i);
      for (int64_t d = 0; d < dim; ++d) out[d] = total[i].values[d] / total[i].sum;
    }
  }

 private:
  const AttentionGeometry& geometry_;
  KvPageAccess pages_;
  int kv_head_;
  const MixerLoops& loops_;
  float scale_;
};

}  // namespace

void CpuAttentionInputs(const AttentionGeometry& geometry, const AttentionWeights& weights,
                        int64_t position, ConstRows q_gate, ConstRows k, ConstRows v, Rows q,
                        const KvPages& kv, ThreadPool& pool) {
  const int dim = geometry.head_dim;
  const KvPageAccess pages(kv, geometry.kv_heads, dim);
  pool.ParallelFor(q.rows, [&](int64_t row) {
    std::vector<float> head_values(static_cast<size_t>(dim));
    for (int head = 0; head < geometry.heads; ++head) {
      float* out = q.data + row * q.cols + int64_t{1} * head * dim;
      RefRmsNorm(QGatePart(q_gate, row, head, kQueryHalf, dim), weights.q_norm, dim, geometry.eps,
                 out);
      RefRope(weights.inv_freq, geometry.rotary_dim, position + row, out);
      for (int d = 0; d < dim; ++d) out[d] = RoundToBf16(out[d]);
    }
    for (int head = 0; head < geometry.kv_heads; ++head) {
      const int64_t at = row * k.cols + int64_t{1} * head * dim;
      RefRmsNorm(k.data + at, weights.k_norm, dim, geometry.eps, head_values.data());
      RefRope(weights.inv_freq, geometry.rotary_dim, position + row, head_values.data());
      pages.Store(false, position + row, head, head_values.data());
      pages.Store(true, position + row, head, v.data + at);
    }
  });
}

void CpuAttention(const AttentionGeometry& geometry, int64_t position, ConstRows q,
                  ConstRows q_gate, const KvPages& kv, Rows out, const MixerLoops& loops,
                  ThreadPool& pool) {
  const int64_t dim = geometry.head_dim;
  const int64_t blocks = (q.rows + kRowsPerTask - 1) / kRowsPerTask;
  pool.ParallelFor(geometry.heads * blocks, [&](int64_t task) {
    const int head = static_cast<int>(task / blocks);
    const int64_t first = task % blocks * kRowsPerTask;
    const int64_t rows = std::min(kRowsPerTask, q.rows - first);
    HeadAttention attention(geometry, kv, head, LoopsFor(loops, dim, dim));
    attention.Run(
        position + first, rows,
        [&](int64_t i) { return q.data + (first + i) * q.cols + head * dim; },
        [&](int64_t i) { return out.data + (first + i) * out.cols + head * dim; });
    for (int64_t i = first; i < first + rows; ++i) {
      const float* gate = QGatePart(q_gate, i, head, kGateHalf, dim);
      float* result = out.data + i * out.cols + head * dim;
      for (int64_t d = 0; d < dim; ++d) result[d] *= Sigmoid(gate[d]);
    }
  });
}

void CpuDeltaNet(const DeltaNetGeometry& geometry, const DeltaNetWeights& weights, ConstRows qkv,
                 ConstRows a, ConstRows b, const float* state_in, float* state_out, Rows out,
                 const MixerLoops& loops, ThreadPool& pool) {
  const int64_t key_dim = geometry.key_dim;
  const int64_t value_dim = geometry.value_dim;
  const int64_t keys_width = geometry.key_heads * key_dim;
  const int per_key_head = geometry.value_heads / geometry.key_heads;
  const float q_scale = 1.0f / std::sqrt(static_cast<float>(key_dim));
  const auto step = LoopsFor(loops, key_dim, value_dim).delta_net_step;
  pool.ParallelFor(geometry.value_heads, [&](int64_t head) {
    const int64_t elements = key_dim * value_dim;
    std::vector<float> scratch;
    float* state = state_out == nullptr ? nullptr : state_out + head * elements;
    if (state == nullptr) {  // the caller keeps nothing: run on a copy
      scratch.resize(static_cast<size_t>(elements));
      state = scratch.data();
    }
    const float* before = state_in + head * elements;
    if (state != before) {
      std::memcpy(state, before, static_cast<size_t>(elements) * sizeof(float));
    }
    std::vector<float> q(static_cast<size_t>(key_dim));
    std::vector<float> k(static_cast<size_t>(key_dim));
    const int64_t key_head = head / per_key_head;
    for (int64_t row = 0; row < qkv.rows; ++row) {
      const float* x = qkv.data + row * qkv.cols;
      RefL2Norm(x + key_head * key_dim, key_dim, q_scale, q.data());
      RefL2Norm(x + keys_width + key_head * key_dim, key_dim, 1.0f, k.data());
      const DeltaNetGate gate =
          RefDeltaNetGate(a.data[row * a.cols + head], b.data[row * b.cols + head],
                          weights.a_log[head], weights.dt_bias[head]);
      step(q.data(), k.data(), x + 2 * keys_width + head * value_dim, gate, key_dim, value_dim,
           state, out.data + row * out.cols + head * value_dim);
    }
  });
}

}  // namespace hallmark
