// SPDX-License-Identifier: Apache-2.0
// ModelTarget: the engine's own Target, a model on a backend, with its drafter if it has one. A
// state is a sequence, the drafter's context beside it, and a window for rows that wait.
#ifndef HALLMARK_ENGINE_RUN_MODEL_TARGET_H_
#define HALLMARK_ENGINE_RUN_MODEL_TARGET_H_

#include <memory>
#include <optional>

#include "engine/draft/draft_pass.h"
#include "engine/model/forward.h"
#include "engine/model/kv_pool.h"
#include "engine/run/target.h"

namespace hallmark {

class ModelTarget : public Target {
 public:
  // `model` and `drafter` (may be null) outlive the target; `info` gives what no model knows:
  // drawable_ids and the two places. Allocates scratch for one pass.
  static Result<std::unique_ptr<ModelTarget>> Create(const Model& model, const Drafter* drafter,
                                                     const KvPoolOptions& pages, TargetInfo info);

  const TargetInfo& info() const override { return info_; }
  Result<std::unique_ptr<TargetState>> Create() override;
  Result<std::unique_ptr<TargetState>> Fork(const TargetState& state) override;
  Result<std::vector<std::vector<float>>> Run(std::span<const TargetSlice> slices) override;
  Status Commit(TargetState& state, int64_t rows) override;
  Result<std::vector<std::vector<int32_t>>> Draft(std::span<const DraftAsk> asks) override;
  void set_reclaim(std::function<bool()> reclaim) override {
    pool_->set_reclaim(std::move(reclaim));
  }
  int64_t pages_held() const override { return pool_->pages_held(); }

 private:
  struct State;

  void AppendTaps(State& state, int64_t first_row, int64_t rows);
  ModelTarget(const Model& model, const Drafter* drafter) : model_(&model), drafter_(drafter) {}

  const Model* model_;
  const Drafter* drafter_;
  TargetInfo info_;
  std::shared_ptr<KvPool> pool_;
  std::optional<ForwardPass> pass_;
  std::optional<DraftPass> draft_pass_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_RUN_MODEL_TARGET_H_
