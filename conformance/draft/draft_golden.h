// SPDX-License-Identifier: Apache-2.0
// The golden files beside a golden drafter (golden.safetensors, golden_long.safetensors: the
// published module in fp32) as runs to repeat, and a drafter measured against them. Clause
// draft-golden. Not for deciding what difference is allowed: that is the tolerance register.
#ifndef HALLMARK_CONFORMANCE_DRAFT_DRAFT_GOLDEN_H_
#define HALLMARK_CONFORMANCE_DRAFT_DRAFT_GOLDEN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/draft/draft_pass.h"
#include "engine/draft/drafter.h"

namespace hallmark {

// One block proposed after `length` committed tokens, and what the published module gave.
struct DraftGoldenRun {
  std::string name;  // "seq0", "F128"
  int64_t length = 0;
  std::vector<int32_t> ids;  // the committed tokens; empty where they are not recorded
  std::vector<float> taps;   // [length, taps * hidden]; empty where they are not recorded
  int32_t anchor = 0;
  std::vector<float> rows;     // [block - 1, hidden]
  std::vector<int32_t> draft;  // [block - 1]
  std::vector<float> margins;  // [block - 1] top-1 minus top-2 logit; empty: not recorded
};

// Reads every run of DIR; `ids` are the tokens that runs named after their length were made from
// (empty: those of the file itself). kNotFound without the file, kMalformed names a tensor.
Result<std::vector<DraftGoldenRun>> ReadDraftGolden(const std::string& directory,
                                                    std::span<const int32_t> ids = {});
// The tensor "ids" of a golden target's own file.
Result<std::vector<int32_t>> ReadGoldenIds(const std::string& directory);

enum class TapSource {
  kGolden,  // as recorded
  kEngine,  // of our own target's pass over the run's ids
};

struct DraftComparison {
  size_t rows = 0;
  size_t non_finite = 0;
  double worst_relative = 0;  // over rows: largest difference over the row's largest magnitude
  size_t compared = 0;        // proposals above the margin
  size_t close = 0;           // at or below it, not compared
  size_t differ = 0;

  std::string ToString() const;
};

// Appends the run's taps `chunk` rows at a time and proposes. Proposals whose recorded margin is at
// most `min_margin` are not compared. `kv`: of the target's own pass.
Result<DraftComparison> CompareDraft(const Drafter& drafter, const DraftGoldenRun& run,
                                     TapSource source, double min_margin, int64_t chunk = 128,
                                     KvType kv = KvType::kBf16);

// Taps of `ids` by the target's own pass, [ids, taps * hidden] on the host.
Result<std::vector<float>> EngineTaps(const Drafter& drafter, std::span<const int32_t> ids,
                                      KvType kv = KvType::kBf16);

// Appends host rows, `chunk` at a time.
Status AppendTaps(DraftPass& pass, const Drafter& drafter, DraftContext& context,
                  std::span<const float> taps, int64_t chunk = 128);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_DRAFT_DRAFT_GOLDEN_H_
