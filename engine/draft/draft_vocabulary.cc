// SPDX-License-Identifier: Apache-2.0
#include "engine/draft/draft_vocabulary.h"

#include <algorithm>
#include <string>

#include "engine/base/check.h"
#include "engine/base/checked.h"

namespace hallmark {

Result<DraftVocabulary> DraftVocabulary::Make(std::span<const IdSpan> spans, int64_t vocab) {
  std::vector<IdSpan> sorted(spans.begin(), spans.end());
  for (IdSpan& span : sorted) {
    if (span.begin < 0 || span.begin >= span.end || span.end > vocab) {
      return Fail(Code::kOutOfRange,
                  "the span of ids [" + std::to_string(span.begin) + ", " +
                      std::to_string(span.end) + ") is empty or outside the vocabulary of " +
                      std::to_string(vocab),
                  {.flag = "draft vocabulary"});
    }
    span.begin = span.begin / kColumnStrip * kColumnStrip;
    span.end = std::min(vocab, RoundUp(span.end, kColumnStrip));
  }
  if (sorted.empty()) sorted.push_back({0, vocab});
  std::sort(sorted.begin(), sorted.end(),
            [](const IdSpan& a, const IdSpan& b) { return a.begin < b.begin; });
  DraftVocabulary vocabulary;
  for (const IdSpan& span : sorted) {
    auto& columns = vocabulary.columns_;
    if (!columns.empty() && span.begin <= columns.back().first + columns.back().count) {
      columns.back().count = std::max(columns.back().count, span.end - columns.back().first);
    } else {
      columns.push_back({.first = span.begin, .count = span.end - span.begin});
    }
  }
  for (const ColumnSpan& span : vocabulary.columns_) vocabulary.size_ += span.count;
  vocabulary.whole_ = vocabulary.size_ == vocab;
  return vocabulary;
}

int32_t DraftVocabulary::IdOf(int64_t index) const {
  for (const ColumnSpan& span : columns_) {
    if (index < span.count) return static_cast<int32_t>(span.first + index);
    index -= span.count;
  }
  CHECK(false);
  return -1;
}

}  // namespace hallmark
