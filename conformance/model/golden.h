// SPDX-License-Identifier: Apache-2.0
// The golden file beside a golden model (golden.safetensors: fp32 HF transformers on the same
// weights) as runs to repeat, and a model measured against them. Clause model-golden. Not for
// deciding what difference is allowed: that is the tolerance register.
#ifndef HALLMARK_CONFORMANCE_MODEL_GOLDEN_H_
#define HALLMARK_CONFORMANCE_MODEL_GOLDEN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/harness/comparators.h"
#include "engine/backend/geometry.h"
#include "engine/base/result.h"
#include "engine/model/model.h"

namespace hallmark {

// Rows of the residual stream at given positions: tap 0 is the embedding, L the output of layer
// L-1.
struct GoldenHidden {
  int tap = 0;
  std::vector<int64_t> positions;
  std::vector<float> rows;  // [positions, hidden]
};

// One sequence fed whole, and what was recorded of it.
struct GoldenRun {
  std::string name;  // "prompt0", "long", "ids"
  std::vector<int32_t> ids;
  std::vector<int64_t> logit_positions;
  std::vector<float> logits;  // [logit_positions, vocab]
  std::vector<GoldenHidden> hidden;
  // Teacher-forced: the reference's argmax at each of these positions and top-1 minus top-2.
  std::vector<int64_t> argmax_positions;
  std::vector<int32_t> argmax;
  std::vector<float> margins;
};

// Reads DIR/golden.safetensors in either of its layouts: prompts with greedy replies, or one
// sequence of ids with chosen rows. kNotFound without the file; kMalformed names a tensor.
Result<std::vector<GoldenRun>> ReadGolden(const std::string& directory);

struct GoldenComparison {
  std::string name;
  Drift logits;
  std::vector<Drift> hidden;  // one per GoldenHidden; its KL means nothing
  ArgmaxAgreement argmax;     // at `min_margin`; compared = 0 where the run records none
  bool has_argmax = false;
};

// Feeds one run to `model` in pieces of `chunk` rows (0: whole) and measures. The logits of every
// position are computed; those compared are the recorded ones.
Result<GoldenComparison> CompareGolden(const Model& model, const GoldenRun& run, KvType kv,
                                       double min_margin, int64_t chunk = 0);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_MODEL_GOLDEN_H_
