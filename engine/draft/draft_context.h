// SPDX-License-Identifier: Apache-2.0
// DraftContext: what one stream's committed tokens leave behind in a drafter: fp32 keys and values
// of every layer, fused from the target's taps. Append-only: draft rows never enter, so nothing is
// ever rewound. Rows that no window can see again are dropped. Move-only; not thread-safe, and
// neither are two forks of one context. Filled by DraftPass::Append.
#ifndef HALLMARK_ENGINE_DRAFT_DRAFT_CONTEXT_H_
#define HALLMARK_ENGINE_DRAFT_DRAFT_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/backend/buffer.h"
#include "engine/backend/draft_ops.h"
#include "engine/base/result.h"

namespace hallmark {

class Drafter;

class DraftContext {
 public:
  static constexpr int64_t kPageRows = 64;
  // Taps kept as they came until this many are there or a proposal needs them.
  static constexpr int64_t kPendingRows = 128;

  // Empty: length 0. `drafter` outlives the context.
  static Result<DraftContext> Create(const Drafter& drafter);

  // The same rows: full pages are shared until they are dropped, what is still being filled is
  // copied when either side writes.
  Result<DraftContext> Fork() const;

  // Bytes held, shared pages counted in full.
  size_t bytes() const;
  // Rows appended: the number of committed tokens, and the position of the next.
  int64_t length() const { return length_; }

 private:
  friend class DraftPass;

  // Layer l's keys begin at l * 2 * kPageRows * kv_width floats, its values kPageRows * kv_width
  // later.
  using Page = std::shared_ptr<Buffer>;

  int64_t pending() const { return length_ - fused_; }
  int64_t first_position() const { return first_page_ * kPageRows; }
  // The positions from `first` on are all that is needed from now on.
  void DropBefore(int64_t first);
  // Makes the page of `position` exist and belong to this context alone.
  Result<float*> WritablePage(int64_t position);
  std::vector<const float*> LayerPages(size_t layer) const;

  const Drafter* drafter_ = nullptr;
  int64_t length_ = 0;
  int64_t fused_ = 0;       // positions below have keys and values, or were dropped
  int64_t first_page_ = 0;  // pages_[0] begins at position first_page_ * kPageRows
  std::vector<Page> pages_;
  Buffer taps_;  // [kPendingRows, tap width]: positions fused_ .. length_ - 1; empty until used
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_DRAFT_DRAFT_CONTEXT_H_
