// SPDX-License-Identifier: Apache-2.0
// The drafter's attention: the rows of one block over a context in pages and over each other. Not
// for the target's attention (mixers/attention.h). Implements clause row-invariance, with the bits
// of the CPU backend (RefDraftAttention).
//
// Three launches. Scores: 16 lanes make a BlockedSum over a head's channels. Softmax: a block of
// threads owns a query; p = exp(score - max), and their sum is a BlockedSum over the keys that the
// query sees, the first of them in the first place. Values: a thread owns a channel of a query and
// adds p * v key by key from zero; then one division.
#ifndef HALLMARK_KERNELS_DRAFT_ATTENTION_H_
#define HALLMARK_KERNELS_DRAFT_ATTENTION_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hallmark {

struct DraftAttentionShape {
  int heads = 0;     // query heads; a multiple of kv_heads. Query head j reads kv head
  int kv_heads = 0;  // j / (heads / kv_heads)
  int head_dim = 0;
  int64_t window = 0;   // a key is seen iff query - key < window (and key - query < window); 0: all
  bool causal = false;  // block rows see no later block row
};

// Positions first_position .. end - 1, in pages of page_rows positions; pages[p] begins at position
// first_position + p * page_rows and holds K [page_rows, kv_heads * head_dim], then V the same.
// Positions below first_position are unseen. The array of pointers lies in device memory.
struct DraftContextPages {
  int64_t first_position = 0;
  int64_t end = 0;
  int64_t page_rows = 0;
  const float* const* pages = nullptr;
};

// The first context position that any row sees: the first row's reach is the furthest back.
constexpr int64_t DraftFirstSeen(const DraftAttentionShape& shape,
                                 const DraftContextPages& context) {
  const int64_t reach = context.end - shape.window + 1;
  if (shape.window == 0 || reach < context.first_position) return context.first_position;
  return reach < context.end ? reach : context.end;
}
// Floats of scratch: a score a key that some row may see, and a sum, for each head of each row.
constexpr int64_t DraftAttentionScratchFloats(const DraftAttentionShape& shape,
                                              const DraftContextPages& context, int64_t rows) {
  return rows * shape.heads * (context.end - DraftFirstSeen(shape, context) + rows + 1);
}

// The first row stands at position context.end. Scores are (q . k) / sqrt(head_dim); keys follow in
// order of position. q, out [rows, heads * head_dim]; k, v [rows, kv_heads * head_dim]; `out`
// overlaps no input. cudaErrorInvalidValue for heads that do not divide, a broken context, or more
// than 65,535 rows, heads or tiles of 128 channels.
cudaError_t LaunchDraftAttention(const DraftAttentionShape& shape, const DraftContextPages& context,
                                 const float* q, const float* k, const float* v, int64_t rows,
                                 float* scratch, float* out, cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_DRAFT_ATTENTION_H_
