// SPDX-License-Identifier: Apache-2.0
// CudaDraftOps: DraftOps on the GPU, with the bits of the CPU backend but for columns of EXL3
// heads. ScaleLogits does not wait: a logit that is not finite is told by TopColumns, or by the
// next call that waits.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_CUDA_DRAFT_OPS_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_CUDA_DRAFT_OPS_H_

#include "engine/backend/cuda/execution.h"
#include "engine/backend/draft_ops.h"

namespace hallmark {

class CudaDraftOps : public DraftOps {
 public:
  // `execution` outlives the object.
  explicit CudaDraftOps(CudaExecution& execution) : execution_(execution) {}

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
  Status RankOnHost(ConstRows logits, int64_t count, std::span<int32_t> columns,
                    std::span<float> values);

  CudaExecution& execution_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_CUDA_DRAFT_OPS_H_
