// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_draft_ops.h"

#include <cstring>
#include <vector>

#include "engine/backend/cpu/ref/draft.h"
#include "engine/backend/cuda/cuda_linear.h"
#include "engine/base/check.h"
#include "kernels/draft/attention.h"
#include "kernels/draft/dynamic_conv.h"
#include "kernels/draft/heads.h"
#include "kernels/draft/top_columns.h"
#include "kernels/rows/norm.h"
#include "kernels/rows/pointwise.h"

namespace hallmark {

Status CudaDraftOps::LinearColumns(const LinearWeight& weight, std::span<const ColumnSpan> spans,
                                   ConstRows x, Rows y) {
  return static_cast<const CudaLinear&>(weight).RunColumns(spans, x, y, execution_);
}

Status CudaDraftOps::PlainRmsNorm(ConstRows x, const float* weight, float eps, Rows out) {
  CHECK(out.cols == x.cols);
  return execution_.Launch("LaunchPlainRmsNorm", [&](cudaStream_t stream) {
    return LaunchPlainRmsNorm(x.data, x.rows, x.cols, weight, eps, out.data, stream);
  });
}

Status CudaDraftOps::DraftHeads(const DraftHeadGeometry& geometry, const float* weight,
                                const float* inv_freq, int64_t position, ConstRows x, Rows out) {
  CHECK(x.cols == int64_t{1} * geometry.heads * geometry.head_dim);
  const DraftHeadShape shape{
      .heads = geometry.heads, .head_dim = geometry.head_dim, .eps = geometry.eps};
  return execution_.Launch("LaunchDraftHeads", [&](cudaStream_t stream) {
    return LaunchDraftHeads(shape, weight, inv_freq, position, x.data, x.rows, out.data, stream);
  });
}

Status CudaDraftOps::DraftAttention(const DraftAttentionGeometry& geometry,
                                    const DraftContextView& context, ConstRows q, ConstRows k,
                                    ConstRows v, Rows out) {
  if (q.rows == 0) return {};
  const std::vector<const void*> pointers(context.pages.begin(), context.pages.end());
  const DraftAttentionShape shape{.heads = geometry.heads,
                                  .kv_heads = geometry.kv_heads,
                                  .head_dim = geometry.head_dim,
                                  .window = geometry.window,
                                  .causal = geometry.causal};
  const DraftContextPages pages{
      .first_position = context.first_position,
      .end = context.end,
      .page_rows = context.page_rows,
      .pages = static_cast<const float* const*>(TRY(execution_.tables().Place(pointers)))};
  const size_t bytes =
      static_cast<size_t>(DraftAttentionScratchFloats(shape, pages, q.rows)) * sizeof(float);
  auto* scratch = static_cast<float*>(TRY(execution_.draft().Reserve(bytes)));
  return execution_.Launch("LaunchDraftAttention", [&](cudaStream_t stream) {
    return LaunchDraftAttention(shape, pages, q.data, k.data, v.data, q.rows, scratch, out.data,
                                stream);
  });
}

Status CudaDraftOps::DynamicConv(const DynamicConvGeometry& geometry, const float* base,
                                 ConstRows dyn, ConstRows x, Rows out) {
  const DynamicConvShape shape{.kernel = geometry.kernel,
                               .group = geometry.group,
                               .block_rows = geometry.block_rows,
                               .side = geometry.side};
  return execution_.Launch("LaunchDynamicConv", [&](cudaStream_t stream) {
    return LaunchDynamicConv(shape, base, dyn.data, x.data, x.rows, x.cols, out.data, stream);
  });
}

Status CudaDraftOps::Scale(Rows x, float factor) {
  return execution_.Launch("LaunchScale", [&](cudaStream_t stream) {
    return LaunchScale(x.data, x.rows * x.cols, factor, stream);
  });
}

Status CudaDraftOps::ScaleLogits(const DraftLogitScale& scale, Rows logits) {
  int32_t* bad = execution_.faults().draft_row();
  return execution_.Launch("LaunchScaleLogits", [&](cudaStream_t stream) {
    return LaunchScaleLogits(logits.data, logits.rows, logits.cols, scale.multiplier, scale.softcap,
                             bad, stream);
  });
}

// More candidates than the kernel keeps: no known drafter asks for so many.
Status CudaDraftOps::RankOnHost(ConstRows logits, int64_t count, std::span<int32_t> columns,
                                std::span<float> values) {
  std::vector<float> row(static_cast<size_t>(logits.cols));
  for (int64_t i = 0; i < logits.rows; ++i) {
    TRY(execution_.Download(row.data(), logits.data + i * logits.cols, row.size() * sizeof(float)));
    RefTopColumns(row.data(), logits.cols, count, columns.data() + i * count,
                  values.data() + i * count);
  }
  return {};
}

Status CudaDraftOps::TopColumns(ConstRows logits, int64_t count, std::span<int32_t> columns,
                                std::span<float> values) {
  const size_t ranked = static_cast<size_t>(logits.rows * count);
  CHECK(columns.size() == ranked && values.size() == ranked);
  if (ranked == 0) return {};
  if (count > kTopMaxCount) return RankOnHost(logits, count, columns, values);
  // Values, then columns, side by side: one download. The sort's scratch begins at a multiple of 8.
  const size_t results = (2 * ranked + 1) / 2 * 2 * sizeof(float);
  const size_t scratch =
      static_cast<size_t>(TopColumnsScratch(logits.rows, logits.cols, count)) * sizeof(uint64_t);
  auto* memory = static_cast<std::byte*>(TRY(execution_.draft().Reserve(results + scratch)));
  auto* best = reinterpret_cast<float*>(memory);
  auto* places = reinterpret_cast<int32_t*>(best + ranked);
  auto* sorted = reinterpret_cast<uint64_t*>(memory + results);
  TRY(execution_.Launch("LaunchTopColumns", [&](cudaStream_t stream) {
    return LaunchTopColumns(logits.data, logits.rows, logits.cols, count, sorted, places, best,
                            stream);
  }));
  std::vector<float> host(2 * ranked);
  TRY(execution_.Download(host.data(), memory, host.size() * sizeof(float)));
  std::memcpy(values.data(), host.data(), values.size_bytes());
  std::memcpy(columns.data(), host.data() + ranked, columns.size_bytes());
  return {};
}

}  // namespace hallmark
