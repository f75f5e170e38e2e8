// SPDX-License-Identifier: Apache-2.0
// Token windows: stretches of ids on which two models are compared. Given by the caller, or made of
// a model's own draws, so that no corpus and no tokenizer is needed: a few ids by rule, then what
// the model samples with the keyed sampler. Determinism: a function of the model, its backend's
// arithmetic, and the seed.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_TOKEN_WINDOWS_H_
#define HALLMARK_CONFORMANCE_VALIDATE_TOKEN_WINDOWS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "conformance/validate/progress.h"
#include "engine/base/result.h"

namespace hallmark {

class Session;

using TokenWindow = std::vector<int32_t>;

inline constexpr uint64_t kWindowSeed = 0x57494E444F5753ull;

struct WindowOptions {
  int windows = 8;
  int64_t tokens = 256;  // of each, the ids of the rule included
  uint64_t seed = kWindowSeed;
};
// Ids at the beginning of each window that a rule gives and no model.
inline constexpr int64_t kRuleIds = 4;

// Draws at temperature 1 from the likeliest ids that together have 0.9 of the probability, past
// stop ids: from all ids a small model soon draws noise. Fewer tokens where the model has no more
// positions. kOutOfRange for windows too short to hold a draw.
Result<std::vector<TokenWindow>> SampleWindows(Session& session, const WindowOptions& options,
                                               const StepProgress& progress);

// What a file of windows may hold.
struct WindowLimits {
  int64_t vocab = std::numeric_limits<int32_t>::max();   // ids lie below
  int64_t tokens = std::numeric_limits<int64_t>::max();  // of one window
  int64_t total = std::numeric_limits<int64_t>::max();   // of all windows
};

// One window a line, {"ids": [1, 2, 3]}, an id or more; other members are for the file's owner.
// Else kMalformed or kOutOfRange, with the line in the message, its byte and the pointer in it.
Result<std::vector<TokenWindow>> ReadWindows(const std::string& path, const WindowLimits& limits);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_TOKEN_WINDOWS_H_
