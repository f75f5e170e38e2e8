// SPDX-License-Identifier: Apache-2.0
// Scalar definitions of the drafter's operations (all tiers use them; linears are elsewhere). fp32,
// no fused multiply-add. Shapes: engine/backend/draft_ops.h.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_REF_DRAFT_H_
#define HALLMARK_ENGINE_BACKEND_CPU_REF_DRAFT_H_

#include <cstdint>

namespace hallmark {

// out[i] = (x[i] * r) * weight[i], r = 1 / sqrt(sum(x^2) / count + eps). `out` may be `x`.
void RefPlainRmsNorm(const float* x, const float* weight, int64_t count, float eps, float* out);

// One query head over `count` keys in order: score[t] = (q . k[t]) * scale, q . k a BlockedSum;
// p[t] = exp(score[t] - max); out[d] = (sum of p[t] * v[t][d], key by key from zero) /
// (BlockedSum of p). keys and values are pointers to rows of head_dim; `scores` is scratch [count].
void RefDraftAttention(const float* q, const float* const* keys, const float* const* values,
                       int64_t count, int64_t head_dim, float scale, float* scores, float* out);

// One row of the dynamic convolution. `row_in_block` bounds the taps: x - t * channels exists for
// t <= row_in_block. dyn [kernel, channels / group] of this row and side; base [kernel, channels].
// out[c] = (base0 + dyn0) x[c], then + (base1 + dyn1) x[c - 1 row], and so on.
void RefDynamicConv(const float* x, int64_t channels, const float* base, const float* dyn,
                    int64_t kernel, int64_t group, int64_t row_in_block, float* out);

// value * multiplier, then softcap * tanh(. / softcap) unless softcap is 0.
float RefScaleLogit(float value, float multiplier, float softcap);

// The `count` largest of `values`, best first, lower index first among equals.
void RefTopColumns(const float* values, int64_t size, int64_t count, int32_t* columns, float* best);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_REF_DRAFT_H_
