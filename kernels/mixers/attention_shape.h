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

// A page holds K [256, kv_heads, head_dim] of 256 positions, then V the same. It starts at a
// multiple of 16 bytes. An array of page pointers lies in device memory; entry p holds positions
// [256 p, 256 p + 256) of one sequence.
inline constexpr int64_t kPagePositions = 256;

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_MIXERS_ATTENTION_SHAPE_H_
