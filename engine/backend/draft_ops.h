// SPDX-License-Identifier: Apache-2.0
// DraftOps: the operations that block-diffusion drafters (DFlash, DFlash2) need beside those of
// Backend, over the same memory and weights. It knows shapes and buffers, and no drafter: no layer,
// no config, no round.
//
// The promises are Backend's (clause row-invariance): a row's bits depend on that row, the weights
// and, where rows of one block see each other, the rows of that block; never on who else shares the
// call. Activations, keys and values are fp32: nothing here rounds to a narrower type.
#ifndef HALLMARK_ENGINE_BACKEND_DRAFT_OPS_H_
#define HALLMARK_ENGINE_BACKEND_DRAFT_OPS_H_

#include <cstdint>
#include <span>

#include "engine/backend/backend.h"
#include "engine/base/result.h"

namespace hallmark {

// Columns [first, first + count) of a linear's output.
struct ColumnSpan {
  int64_t first = 0;
  int64_t count = 0;
};
// Spans begin and end at multiples of this, or at the last column.
inline constexpr int64_t kColumnStrip = 128;

struct DraftHeadGeometry {
  int heads = 0;
  int head_dim = 0;  // even; pairs (d, d + head_dim/2) are rotated
  float eps = 0.0f;
};

struct DraftAttentionGeometry {
  int heads = 0;     // query heads; a multiple of kv_heads. Query head j reads kv head
  int kv_heads = 0;  // j / (heads / kv_heads)
  int head_dim = 0;
  int64_t window = 0;   // a key is seen iff query - key < window (and key - query < window); 0: all
  bool causal = false;  // block rows see no later block row
};

// One layer's keys and values of a context: positions first_position .. end - 1, in pages of
// page_rows positions; pages[p] begins at position first_position + p * page_rows and holds
// K [page_rows, kv_heads * head_dim], then V the same. Positions below first_position are unseen.
struct DraftContextView {
  int64_t first_position = 0;
  int64_t end = 0;
  int64_t page_rows = 0;
  std::span<const float* const> pages;
};

struct DynamicConvGeometry {
  int64_t kernel = 0;      // taps
  int64_t group = 0;       // channels that share a coefficient
  int64_t block_rows = 0;  // row r of a call is row r % block_rows of its block
  int side = 0;            // 0 or 1: which half of the coefficients
};

struct DraftLogitScale {
  float multiplier = 1.0f;  // logit * multiplier, then
  float softcap = 0.0f;     // softcap * tanh(. / softcap); 0: none
};

class DraftOps {
 public:
  virtual ~DraftOps() = default;

  // y [rows, sum of counts] = the columns of Backend::Linear(weight, x) that `spans` name, side by
  // side, bit for bit (clause slice-equals-parent). Spans ascend, do not overlap and keep to
  // strips; the caller checks.
  virtual Status LinearColumns(const LinearWeight& weight, std::span<const ColumnSpan> spans,
                               ConstRows x, Rows y) = 0;

  // out = (x * rsqrt(mean(x^2) + eps)) * weight, per row: a plain factor, not 1 + weight.
  virtual Status PlainRmsNorm(ConstRows x, const float* weight, float eps, Rows out) = 0;

  // Per head of row i: out = rope(plain_norm(x), position + i) over the full width; weight
  // [head_dim], inv_freq [head_dim / 2]. `out` may be `x`.
  virtual Status DraftHeads(const DraftHeadGeometry& geometry, const float* weight,
                            const float* inv_freq, int64_t position, ConstRows x, Rows out) = 0;

  // Attention of one block's rows, the first at position context.end, over the context's keys and
  // the block's own: scores (q . k) / sqrt(head_dim), softmax over all seen keys, keys in order of
  // position. q, out [rows, heads * head_dim]; k, v [rows, kv_heads * head_dim].
  virtual Status DraftAttention(const DraftAttentionGeometry& geometry,
                                const DraftContextView& context, ConstRows q, ConstRows k,
                                ConstRows v, Rows out) = 0;

  // out[i, c] = sum over taps t, in order, of (base[t, c] + dyn[i, side, t, c / group]) *
  // x[i - t, c]; rows before the block's first add nothing. base [kernel, channels] of this side;
  // dyn [rows, 2 * kernel * (channels / group)]. `out` is not `x`.
  virtual Status DynamicConv(const DynamicConvGeometry& geometry, const float* base, ConstRows dyn,
                             ConstRows x, Rows out) = 0;

  // x *= factor.
  virtual Status Scale(Rows x, float factor) = 0;

  // In place, as DraftLogitScale says. kOutOfRange names the first row with a logit that is
  // not finite, before or after; an asynchronous backend tells it at the next TopColumns.
  virtual Status ScaleLogits(const DraftLogitScale& scale, Rows logits) = 0;

  // The `count` highest columns of each row, best first, the lowest column first among equals:
  // columns [rows, count] and values [rows, count], on the host. count <= cols; values are finite.
  virtual Status TopColumns(ConstRows logits, int64_t count, std::span<int32_t> columns,
                            std::span<float> values) = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_DRAFT_OPS_H_
