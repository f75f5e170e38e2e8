// SPDX-License-Identifier: Apache-2.0
// DraftPass: one forward pass of a drafter over blocks of several streams, written once over the
// backend's operations, with its scratch memory. Row i of a block predicts the token at its own
// position, length + i; row 0, the anchor, predicts nothing. Clause draft-golden.
//
// The bits of a stream's proposal depend on its context, anchor and noise alone, never on who
// shares the call or on how its rows were appended. fp32 throughout.
#ifndef HALLMARK_ENGINE_DRAFT_DRAFT_PASS_H_
#define HALLMARK_ENGINE_DRAFT_DRAFT_PASS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/draft/draft_context.h"
#include "engine/draft/drafter.h"

namespace hallmark {

struct DraftRequest {
  DraftContext* context = nullptr;  // rows of every token before the anchor
  int32_t anchor = 0;               // the pending token: drawn, not yet run by the target
  // With noise, a step takes argmax(score / max(temperature, 1e-6) + noise(position, id)); without,
  // argmax(score). Ties go to the better candidate, then the lower id.
  double temperature = 0;
  std::function<double(int64_t position, int32_t token)> noise;
};

struct DraftProposal {
  std::vector<int32_t> ids;  // block_size - 1, for positions length + 1, ...
  std::vector<float> rows;   // [block_size - 1, hidden] after the final norm; only when asked for
};

class DraftPass {
 public:
  // Rows that go through the layers at once: a group of whole blocks.
  static constexpr int64_t kMaxRows = 128;
  // Rows of logits computed at once: bounds the buffer (vocabularies are large).
  static constexpr int64_t kHeadRows = 16;
  static_assert(DrafterConfig::kMaxBlock <= kMaxRows, "a block goes through at once");

  // `drafter` outlives the pass.
  static Result<DraftPass> Create(const Drafter& drafter);

  // Appends committed rows in order. taps [rows, taps * hidden] of the backend's memory, the taps
  // of one row side by side in the order of Drafter::taps(). Rows are fused in batches, at the
  // latest when a proposal needs them; those that no window can see again never.
  Status Append(DraftContext& context, ConstRows taps);

  // One proposal per request, in order. kOutOfRange for an anchor outside the vocabulary, no
  // requests, or a draft logit or score that is not finite.
  Result<std::vector<DraftProposal>> Propose(std::span<const DraftRequest> requests,
                                             bool keep_rows = false);

 private:
  explicit DraftPass(const Drafter& drafter) : drafter_(&drafter) {}

  Status FusePending(DraftContext& context);
  Status StoreRows(DraftContext& context, size_t layer, int64_t rows);
  // The blocks of `requests` (kMaxRows rows at most) up to rows_, anchors dropped.
  Status RunBlocks(std::span<const DraftRequest> requests);
  Status RunLayer(const DrafterLayer& layer, size_t index, std::span<const DraftRequest> requests);
  Status Attend(const DrafterLayer& layer, size_t index, std::span<const DraftRequest> requests,
                ConstRows input);
  Status Convolve(const DrafterConvWeights& conv, int side, Rows x, Rows out);
  // out[request] from rows_.
  Status Select(std::span<const DraftRequest> requests, std::span<DraftProposal> out);
  // columns_ and values_ of rows_; without a selector also drawn_, where noise is asked for.
  Status RankRows(std::span<const DraftRequest> requests);
  Status DrawRows(std::span<const DraftRequest> requests, int64_t first, ConstRows logits);
  Status WalkPaths(std::span<const DraftRequest> requests, std::span<DraftProposal> out);

  int64_t candidates() const;
  Rows View(const Buffer& buffer, int64_t rows, int64_t cols) const {
    return {buffer.floats(), rows, cols};
  }

  const Drafter* drafter_;
  Buffer hidden_, normed_, mixed_, conv_, dyn_;  // [rows, hidden] (dyn: coefficients)
  Buffer q_, k_, v_, attended_;
  Buffer gate_, up_;
  Buffer rows_;                   // [rows, hidden], without anchors
  Buffer logits_;                 // [head rows, draft vocabulary]
  Buffer projected_, codes_;      // selector: [rows, rank], [ids, rank]
  std::vector<int32_t> columns_;  // [rows, candidates]: ids, best first
  std::vector<float> values_;     // [rows, candidates]
  std::vector<int32_t> drawn_;    // [rows]: v1 choices under noise
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_DRAFT_DRAFT_PASS_H_
