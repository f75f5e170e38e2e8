// SPDX-License-Identifier: Apache-2.0
// CpuDraftOps: DraftOps on the CPU. Rows and heads are cut over the threads; the definitions in
// ref/draft.h serve every tier, linears have their own loops (cpu_linear.h).
#ifndef HALLMARK_ENGINE_BACKEND_CPU_DRAFT_OPS_H_
#define HALLMARK_ENGINE_BACKEND_CPU_DRAFT_OPS_H_

#include "engine/backend/cpu/parallel.h"
#include "engine/backend/draft_ops.h"

namespace hallmark {

class CpuDraftOps : public DraftOps {
 public:
  // `pool` outlives the object.
  explicit CpuDraftOps(ThreadPool& pool) : pool_(pool) {}

  Status LinearColumns(const LinearWeight& weight, std::span<const ColumnSpan> spans, ConstRows x,
                       Rows y) override;
  Status PlainRmsNorm(ConstRows x, const float* weight, float eps, Rows out) override;
  Status DraftHeads(const DraftHeadGeometry& geometry, const float* weight, const float* inv_freq,
                    int64_t position, ConstRows x, Rows out) override;
  Status DraftAttention(const DraftAttentionGeometry& geometry, const DraftContextView& context,
                        ConstRows q, ConstRows k, ConstRows v, Rows out) override;
  Status DynamicConv(const DynamicConvGeometry& geometry, const float* base, ConstRows dyn,
                     ConstRows x, Rows out) override;
  Status Scale(Rows x, float factor) override;
  Status ScaleLogits(const DraftLogitScale& scale, Rows logits) override;
  Status TopColumns(ConstRows logits, int64_t count, std::span<int32_t> columns,
                    std::span<float> values) override;

 private:
  ThreadPool& pool_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_DRAFT_OPS_H_
