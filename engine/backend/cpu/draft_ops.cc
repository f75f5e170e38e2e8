// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/draft_ops.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "engine/backend/cpu/cpu_linear.h"
#include "engine/backend/cpu/ref/draft.h"
#include "engine/backend/cpu/ref/pointwise.h"

namespace hallmark {
namespace {

// The keys (or values) one block row sees, as pointers to its kv head's channels, in key order.
class SeenKeys {
 public:
  SeenKeys(const DraftAttentionGeometry& geometry, const DraftContextView& context, ConstRows k,
           ConstRows v)
      : geometry_(geometry), context_(context), k_(k), v_(v) {}

  void Gather(int64_t row, int64_t head, std::vector<const float*>* keys,
              std::vector<const float*>* values) const {
    keys->clear();
    values->clear();
    const int64_t window = geometry_.window;
    const int64_t width = k_.cols;
    const int64_t offset = head * geometry_.head_dim;
    const int64_t query = context_.end + row;
    const int64_t first = window == 0 ? context_.first_position
                                      : std::max(context_.first_position, query - window + 1);
    for (int64_t t = first; t < context_.end; ++t) {
      const int64_t at = t - context_.first_position;
      const float* page = context_.pages[static_cast<size_t>(at / context_.page_rows)];
      const float* key = page + at % context_.page_rows * width + offset;
      keys->push_back(key);
      values->push_back(key + context_.page_rows * width);
    }
    const int64_t last = geometry_.causal ? row : k_.rows - 1;
    for (int64_t j = 0; j <= last; ++j) {
      if (window != 0 && (row - j >= window || j - row >= window)) continue;
      keys->push_back(k_.data + j * width + offset);
      values->push_back(v_.data + j * width + offset);
    }
  }

 private:
  const DraftAttentionGeometry& geometry_;
  const DraftContextView& context_;
  ConstRows k_;
  ConstRows v_;
};

}  // namespace

Status CpuDraftOps::LinearColumns(const LinearWeight& weight, std::span<const ColumnSpan> spans,
                                  ConstRows x, Rows y) {
  return static_cast<const CpuLinear&>(weight).RunColumns(spans, x, y, pool_);
}

Status CpuDraftOps::PlainRmsNorm(ConstRows x, const float* weight, float eps, Rows out) {
  for (int64_t row = 0; row < x.rows; ++row) {
    RefPlainRmsNorm(x.data + row * x.cols, weight, x.cols, eps, out.data + row * out.cols);
  }
  return {};
}

Status CpuDraftOps::DraftHeads(const DraftHeadGeometry& geometry, const float* weight,
                               const float* inv_freq, int64_t position, ConstRows x, Rows out) {
  pool_.ParallelFor(x.rows, [&](int64_t row) {
    for (int head = 0; head < geometry.heads; ++head) {
      const int64_t at = row * x.cols + int64_t{1} * head * geometry.head_dim;
      RefPlainRmsNorm(x.data + at, weight, geometry.head_dim, geometry.eps, out.data + at);
      RefRope(inv_freq, geometry.head_dim, position + row, out.data + at);
    }
  });
  return {};
}

Status CpuDraftOps::DraftAttention(const DraftAttentionGeometry& geometry,
                                   const DraftContextView& context, ConstRows q, ConstRows k,
                                   ConstRows v, Rows out) {
  const SeenKeys seen(geometry, context, k, v);
  const float scale = 1.0f / std::sqrt(static_cast<float>(geometry.head_dim));
  const int per_kv_head = geometry.heads / geometry.kv_heads;
  pool_.ParallelFor(q.rows * geometry.heads, [&](int64_t task) {
    const int64_t row = task / geometry.heads;
    const int64_t head = task % geometry.heads;
    std::vector<const float*> keys, values;
    seen.Gather(row, head / per_kv_head, &keys, &values);
    std::vector<float> scores(keys.size());
    const int64_t at = row * q.cols + head * geometry.head_dim;
    RefDraftAttention(q.data + at, keys.data(), values.data(), static_cast<int64_t>(keys.size()),
                      geometry.head_dim, scale, scores.data(), out.data + at);
  });
  return {};
}

Status CpuDraftOps::DynamicConv(const DynamicConvGeometry& geometry, const float* base,
                                ConstRows dyn, ConstRows x, Rows out) {
  const int64_t half = dyn.cols / 2;
  pool_.ParallelFor(x.rows, [&](int64_t row) {
    RefDynamicConv(x.data + row * x.cols, x.cols, base,
                   dyn.data + row * dyn.cols + geometry.side * half, geometry.kernel,
                   geometry.group, row % geometry.block_rows, out.data + row * out.cols);
  });
  return {};
}

Status CpuDraftOps::Scale(Rows x, float factor) {
  for (int64_t i = 0; i < x.rows * x.cols; ++i) x.data[i] *= factor;
  return {};
}

Status CpuDraftOps::ScaleLogits(const DraftLogitScale& scale, Rows logits) {
  std::atomic<int64_t> first_bad{logits.rows};
  pool_.ParallelFor(logits.rows, [&](int64_t row) {
    float* values = logits.data + row * logits.cols;
    bool finite = true;
    for (int64_t c = 0; c < logits.cols; ++c) {
      finite &= std::isfinite(values[c]);
      values[c] = RefScaleLogit(values[c], scale.multiplier, scale.softcap);
      finite &= std::isfinite(values[c]);
    }
    if (finite) return;
    int64_t before = first_bad.load();
    while (row < before && !first_bad.compare_exchange_weak(before, row)) {
    }
  });
  if (first_bad.load() == logits.rows) return {};
  return Fail(Code::kOutOfRange,
              "a draft logit of row " + std::to_string(first_bad.load()) + " is not finite");
}

Status CpuDraftOps::TopColumns(ConstRows logits, int64_t count, std::span<int32_t> columns,
                               std::span<float> values) {
  pool_.ParallelFor(logits.rows, [&](int64_t row) {
    RefTopColumns(logits.data + row * logits.cols, logits.cols, count, columns.data() + row * count,
                  values.data() + row * count);
  });
  return {};
}

}  // namespace hallmark
