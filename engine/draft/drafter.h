// SPDX-License-Identifier: Apache-2.0
// Drafter: the weights of one DFlash or DFlash2 drafter bound to a backend and to the target whose
// embedding and head it borrows. Opening is all or nothing. Not a stream's state (draft_context.h)
// and not the pass over it (draft_pass.h).
#ifndef HALLMARK_ENGINE_DRAFT_DRAFTER_H_
#define HALLMARK_ENGINE_DRAFT_DRAFTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/draft_ops.h"
#include "engine/draft/draft_vocabulary.h"
#include "engine/draft/drafter_options.h"
#include "engine/format/drafter_config.h"
#include "engine/format/drafter_inventory.h"
#include "engine/model/model.h"

namespace hallmark {

struct DrafterConvWeights {
  Buffer base;  // [2 sides, kernel, hidden]
  std::unique_ptr<LinearWeight> projection;
};

struct DrafterLayer {
  Buffer input_norm, post_norm;  // [hidden]
  Buffer q_norm, k_norm;         // [head_dim]
  std::unique_ptr<LinearWeight> q, k, v, o, gate, up, down;
  std::optional<DrafterConvWeights> attention_conv, mlp_conv;
  DraftAttentionGeometry attention;
};

struct DrafterSelectorWeights {
  std::unique_ptr<EmbeddingTable> predecessor, successor;  // [vocab, rank]
  std::unique_ptr<LinearWeight> projection;                // hidden -> rank
};

// Whether a plain matrix is quantized when it is loaded.
bool QuantizesOnLoad(const PlainLinear& plain, const DrafterOptions& options);

class Drafter {
 public:
  // `target`, its backend and the checkpoint behind `inventory` outlive the drafter (codebook rows
  // are read when asked for). kMismatch when it was made for another target (CheckDrafterFits);
  // kUnsupported when the backend cannot draft.
  static Result<std::unique_ptr<Drafter>> Load(const DrafterInventory& inventory,
                                               const DrafterConfig& config, const Model& target,
                                               const DrafterOptions& options = {});

  // What a target's pass must hand over: residual rows as ForwardRequest::taps counts them (layer
  // id + 1), in the order of fc's columns.
  const std::vector<int>& taps() const { return taps_; }
  int64_t tap_width() const { return config_.tap_width(); }
  int64_t block_size() const { return config_.block_size; }
  const DrafterConfig& config() const { return config_; }
  const DraftVocabulary& vocabulary() const { return vocabulary_; }
  const Model& target() const { return *target_; }
  Backend& backend() const { return *target_->backend; }
  DraftOps& ops() const { return *ops_; }
  // Positions before length - context_rows() are seen by no later block; nullopt: all are seen.
  std::optional<int64_t> context_rows() const;
  // How many matrices were quantized on load.
  int64_t quantized_matrices() const { return quantized_; }

 private:
  friend class DraftPass;
  Drafter() = default;
  Status LoadWeights(const DrafterInventory& inventory, const DrafterOptions& options);

  DrafterConfig config_;
  const Model* target_ = nullptr;
  DraftOps* ops_ = nullptr;
  std::vector<int> taps_;
  DraftVocabulary vocabulary_;
  DraftHeadGeometry q_heads_, k_heads_;
  Buffer inv_freq_;  // [head_dim / 2]
  std::unique_ptr<LinearWeight> fc_;
  Buffer hidden_norm_, norm_;  // [hidden]
  std::vector<DrafterLayer> layers_;
  std::optional<DrafterSelectorWeights> selector_;
  int64_t quantized_ = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_DRAFT_DRAFTER_H_
