// SPDX-License-Identifier: Apache-2.0
// Shapes and small weights of the mixers, as plain values that every backend shares.
#ifndef HALLMARK_ENGINE_BACKEND_GEOMETRY_H_
#define HALLMARK_ENGINE_BACKEND_GEOMETRY_H_

#include <cstddef>
#include <cstdint>

namespace hallmark {

struct AttentionGeometry {
  int heads = 0;       // query heads; a multiple of kv_heads. Query head j reads kv head
  int kv_heads = 0;    // j / (heads / kv_heads)
  int head_dim = 0;    // a multiple of 128
  int rotary_dim = 0;  // even; pairs (d, d + rotary_dim/2); channels beyond are untouched
  float eps = 0.0f;
};

struct AttentionWeights {
  const float* q_norm = nullptr;    // [head_dim], zero-centred: the factor is 1 + w
  const float* k_norm = nullptr;    // [head_dim]
  const float* inv_freq = nullptr;  // [rotary_dim / 2]
};

enum class KvType { kBf16, kFp8E4m3 };
inline constexpr int kKvPageTokens = 256;

// One layer's keys and values. Page p, at pages[p], holds positions [256 p, 256 p + 256); at
// `offset` of it the layer has K [256, kv_heads, head_dim], then V the same, in `type`. The list
// lies in the backend's memory; entries beyond those needed may be anything.
struct KvPages {
  KvType type = KvType::kBf16;
  std::byte* const* pages = nullptr;
  size_t offset = 0;
};

// Where the first row of a call stands in its sequence. The position lies in the backend's memory,
// so that work which was recorded can be replayed at another one; `limit` is known when work is
// recorded, is at least *first + rows for each replay, and changes no bit.
struct RowPosition {
  const int64_t* first = nullptr;
  int64_t limit = 0;
};
constexpr size_t KvPageBytes(KvType type, int kv_heads, int head_dim) {
  return size_t{2} * kKvPageTokens * static_cast<size_t>(kv_heads) * static_cast<size_t>(head_dim) *
         (type == KvType::kBf16 ? 2 : 1);
}

struct DeltaNetGeometry {
  int key_heads = 0;    // value_heads is a multiple; value head i reads key head
  int value_heads = 0;  // i / (value_heads / key_heads)
  int key_dim = 0;      // 128
  int value_dim = 0;    // 128
  int conv_kernel = 0;  // 4
  float eps = 0.0f;     // of the gated norm; the L2 norms of q and k use 1e-6

  int channels() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
  int value_width() const { return value_heads * value_dim; }
  int64_t state_elements() const { return int64_t{1} * value_heads * key_dim * value_dim; }
};

struct DeltaNetWeights {
  const float* a_log = nullptr;    // [value_heads]
  const float* dt_bias = nullptr;  // [value_heads]
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_GEOMETRY_H_
