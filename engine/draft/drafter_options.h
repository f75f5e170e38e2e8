// SPDX-License-Identifier: Apache-2.0
// DrafterOptions: what a user may choose about a drafter. Plain values; none can change a token.
#ifndef HALLMARK_ENGINE_DRAFT_DRAFTER_OPTIONS_H_
#define HALLMARK_ENGINE_DRAFT_DRAFTER_OPTIONS_H_

#include <cstdint>
#include <vector>

namespace hallmark {

struct IdSpan {
  int64_t begin = 0;
  int64_t end = 0;  // past the last
};

enum class DrafterWeights {
  kBf16,     // every matrix as it is stored, BF16 or not
  kAffine4,  // plain matrices quantized to 4 bits on load (affine_quantizer.h)
};

struct DrafterOptions {
  DrafterWeights weights = DrafterWeights::kBf16;
  // kAffine4 takes matrices whose sides are both multiples of 64 and that have at least this many
  // elements; smaller ones gain nothing.
  int64_t affine_min_elements = int64_t{1} << 20;
  std::vector<IdSpan> vocabulary;  // what may be proposed; empty: all
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_DRAFT_DRAFTER_OPTIONS_H_
