// SPDX-License-Identifier: Apache-2.0
// ScratchLayout: where the activations of a forward pass lie. The buffers of attention, of DeltaNet
// and of the MLP are never alive together, so they share one region; what outlives such a phase
// (residual, normed and mixed rows, taps, logits) has memory of its own. The pass allocates by it
// and the memory plan adds it up, so that a plan is what is allocated. Knows sizes, no memory.
// Clause scratch-clean: what a phase leaves in the region is read by no later one.
#ifndef HALLMARK_ENGINE_MODEL_SCRATCH_LAYOUT_H_
#define HALLMARK_ENGINE_MODEL_SCRATCH_LAYOUT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/format/model_config.h"

namespace hallmark {

// Rows of logits computed at once: bounds the buffer (vocabularies are large).
inline constexpr int64_t kHeadRows = 16;
// Where a slot begins in the region: no two share a line of any device's memory.
inline constexpr int64_t kScratchAlignment = 256;

// In the order in which a layer runs them; a layer has one of the first two.
enum class ScratchPhase { kAttention, kDeltaNet, kMlp };

enum class ScratchPart {
  kHidden,
  kNormed,
  kMixed,
  kTaps,
  kLogits,
  kQGate,
  kQ,
  kK,
  kV,
  kAttended,
  kQkv,
  kConv,
  kZ,
  kA,
  kB,
  kRule,
  kGate,
  kUp,
};
inline constexpr size_t kScratchParts = 18;

// fp32 [rows, cols].
struct ScratchSlot {
  std::optional<ScratchPhase> phase;  // absent: memory of its own
  int64_t rows = 0;
  int64_t cols = 0;
  size_t offset = 0;  // in the shared region
  size_t bytes = 0;
};

struct ScratchLayout {
  std::array<ScratchSlot, kScratchParts> slots;
  size_t shared_bytes = 0;  // of the region

  const ScratchSlot& at(ScratchPart part) const { return slots[static_cast<size_t>(part)]; }
};

// For `max_rows` rows a call and `taps` residual rows kept of each. Without `overlap` the phases
// lie in the region one behind the other.
ScratchLayout LayOutScratch(const ModelConfig& config, int64_t max_rows, int64_t taps,
                            bool overlap = true);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_MODEL_SCRATCH_LAYOUT_H_
