// SPDX-License-Identifier: Apache-2.0
// A second, independent forward pass of DFlash and DFlash2 in fp64, with no caches, batches or
// blocking: plain loops over one block and its whole context, for tiny drafters of plain weights.
// It shares nothing with the engine but the weights' numbers and the config. Not fast and not for
// real drafters.
#ifndef HALLMARK_CONFORMANCE_DRAFT_DRAFT_REFERENCE_H_
#define HALLMARK_CONFORMANCE_DRAFT_DRAFT_REFERENCE_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/format/drafter_config.h"
#include "engine/format/tensor.h"

namespace hallmark {

// Values by the drafter's tensor names, linears [out, in]; and the target's embedding and head as
// "embedding" and "head", [vocab, hidden].
using DraftWeights = std::map<std::string, std::vector<double>>;

// The values of a BF16, F16 or F32 tensor.
std::vector<double> ValuesOf(const TensorView& tensor);

struct DraftReference {
  std::vector<double> rows;  // [block - 1, hidden]
  std::vector<int32_t> ids;  // greedy
  double closest = 0;        // the smallest lead any id won by, membership in the top-k included
};

// One block after the tokens that `taps` [rows, taps * hidden] belong to.
DraftReference ReferenceDraft(const DrafterConfig& config, const DraftWeights& weights,
                              std::span<const float> taps, int32_t anchor);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_DRAFT_DRAFT_REFERENCE_H_
