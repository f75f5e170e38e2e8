// SPDX-License-Identifier: Apache-2.0
#include "engine/model/scratch_layout.h"

#include <algorithm>

#include "engine/base/checked.h"
#include "engine/model/geometry.h"

namespace hallmark {

ScratchLayout LayOutScratch(const ModelConfig& config, int64_t max_rows, int64_t taps,
                            bool overlap) {
  ScratchLayout layout;
  const DeltaNetGeometry delta = DeltaNetGeometryOf(config);
  const auto slot = [&](ScratchPart part, int64_t rows, int64_t cols) -> ScratchSlot& {
    ScratchSlot& made = layout.slots[static_cast<size_t>(part)];
    made.rows = rows;
    made.cols = cols;
    made.bytes = static_cast<size_t>(rows * cols) * sizeof(float);
    return made;
  };
  const auto own = [&](ScratchPart part, int64_t cols) { slot(part, max_rows, cols); };
  size_t begin = 0;  // of the phase
  size_t end = 0;
  const auto shared = [&](ScratchPhase phase, ScratchPart part, int64_t cols) {
    ScratchSlot& made = slot(part, max_rows, cols);
    made.phase = phase;
    made.offset = end;
    end += static_cast<size_t>(RoundUp(static_cast<int64_t>(made.bytes), kScratchAlignment));
    layout.shared_bytes = std::max(layout.shared_bytes, end);
  };
  const auto next_phase = [&] {
    if (!overlap) begin = end;
    end = begin;
  };

  own(ScratchPart::kHidden, config.hidden);
  own(ScratchPart::kNormed, config.hidden);
  own(ScratchPart::kMixed, config.hidden);
  own(ScratchPart::kTaps, taps * config.hidden);
  slot(ScratchPart::kLogits, std::min(kHeadRows, max_rows), config.vocab);

  using enum ScratchPhase;
  shared(kAttention, ScratchPart::kQGate, 2 * config.query_width());
  shared(kAttention, ScratchPart::kQ, config.query_width());
  shared(kAttention, ScratchPart::kK, config.kv_width());
  shared(kAttention, ScratchPart::kV, config.kv_width());
  shared(kAttention, ScratchPart::kAttended, config.query_width());
  next_phase();
  shared(kDeltaNet, ScratchPart::kQkv, delta.channels());
  shared(kDeltaNet, ScratchPart::kConv, delta.channels());
  shared(kDeltaNet, ScratchPart::kZ, delta.value_width());
  shared(kDeltaNet, ScratchPart::kA, delta.value_heads);
  shared(kDeltaNet, ScratchPart::kB, delta.value_heads);
  shared(kDeltaNet, ScratchPart::kRule, delta.value_width());
  next_phase();
  shared(kMlp, ScratchPart::kGate, config.intermediate);
  shared(kMlp, ScratchPart::kUp, config.intermediate);
  return layout;
}

}  // namespace hallmark
