// SPDX-License-Identifier: Apache-2.0
// DraftVocabulary: the ids a drafter may propose, as columns of the target's head. Only drafting is
// restricted: the target verifies over its full vocabulary, so no token changes.
#ifndef HALLMARK_ENGINE_DRAFT_DRAFT_VOCABULARY_H_
#define HALLMARK_ENGINE_DRAFT_DRAFT_VOCABULARY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "engine/backend/draft_ops.h"
#include "engine/base/result.h"
#include "engine/draft/drafter_options.h"

namespace hallmark {

class DraftVocabulary {
 public:
  // The spans' union, each rounded outward to strips of 128 ids; no spans: the whole vocabulary.
  // kOutOfRange for a span that is empty or not within it.
  static Result<DraftVocabulary> Make(std::span<const IdSpan> spans, int64_t vocab);

  std::span<const ColumnSpan> columns() const { return columns_; }
  int64_t size() const { return size_; }
  bool whole() const { return whole_; }
  // The id of column `index` of the restricted logits; ascending.
  int32_t IdOf(int64_t index) const;

 private:
  std::vector<ColumnSpan> columns_;  // ascending, apart from each other
  int64_t size_ = 0;
  bool whole_ = false;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_DRAFT_DRAFT_VOCABULARY_H_
