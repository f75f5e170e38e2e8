// SPDX-License-Identifier: Apache-2.0
// Shapes of attention and the layout of key/value pages, as plain values for the kernels. Not the
// operation interface: engine/backend/geometry.h states the same layout for every backend.
#ifndef HALLMARK_KERNELS_MIXERS_ATTENTION_SHAPE_H_
#define HALLMARK_KERNELS_MIXERS_ATTENTION_SHAPE_H_

#include <cstddef>
#include <cstdint>

namespace hallmark {

struct AttentionShape {
  int heads = 0;     // query heads; a multiple of kv_heads. Query head j reads kv head
  int kv_heads = 0;  // j / (heads / kv_heads)
  int head_dim = 0;  // a multiple of 128
};

enum class KvFormat { kBf16, kFp8E4m3 };

inline constexpr int64_t kPagePositions = 256;

// Where one layer's keys and values of one sequence lie, and where the first row of a call stands.
// What changes from call to call lies in device memory, so that a recorded launch can be replayed.
struct KvPlace {
  // In device memory; entry p is the page of positions [256 p, 256 p + 256). At `offset` of it the
  // layer has K [256, kv_heads, head_dim], then V the same. Both are multiples of 16 bytes.
  std::byte* const* pages = nullptr;
  int64_t offset = 0;
  const int64_t* position = nullptr;  // in device memory
};

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_MIXERS_ATTENTION_SHAPE_H_
