// SPDX-License-Identifier: Apache-2.0
// LayerTrace: one short forward pass looked at layer by layer: how large the residual stream
// becomes, and which layer first gives something that is not finite. Ids are a rule, so that no
// tokenizer is needed.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_LAYER_TRACE_H_
#define HALLMARK_CONFORMANCE_VALIDATE_LAYER_TRACE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/result.h"

namespace hallmark {

class Session;

inline constexpr int64_t kTraceTokens = 32;

struct LayerTrace {
  uint64_t rows = 0;  // that were looked at, each after the embedding and after each layer
  // Largest magnitude of the residual rows: of the embedding, then after each layer. What is not
  // finite is left out.
  std::vector<float> largest;
  // The layer after which a row first held a value that is not finite; -1: the embedding.
  std::optional<int> first_not_finite;
  // What the engine itself refused, e.g. an input that overflows fp16: then there are no rows.
  std::optional<Error> refused;
};

// An error is the system's or the device's.
Result<LayerTrace> TraceLayers(const Session& session);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_LAYER_TRACE_H_
