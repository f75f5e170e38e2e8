// SPDX-License-Identifier: Apache-2.0
// The numbers step of validation: every byte of every shard is read once, and what can be seen
// without decoding a tile is judged: values that are not finite, regions that nobody wrote, tiles
// that hold nothing, scales that no quantizer writes or that are far from the other layers'.
// Clauses: format-reject for what is at fault, format-accept for what is merely told. Not for
// whether a model computes well (behaviour.h) or is like its source (source.h).
#ifndef HALLMARK_CONFORMANCE_VALIDATE_NUMBERS_H_
#define HALLMARK_CONFORMANCE_VALIDATE_NUMBERS_H_

#include <optional>
#include <string>

#include "conformance/validate/finding.h"
#include "conformance/validate/progress.h"
#include "engine/base/result.h"

namespace hallmark {

struct NumbersOptions {
  std::string folder;
  std::optional<std::string> drafter;  // a drafter's folder, read and judged too
  bool digests = false;                // SHA-256 of every shard, from the same reading
  int threads = 2;                     // reading is bound by memory: more help little
};

// Takes some MiB beside the small tensors, whatever the checkpoint's size. An error means that the
// folder does not open (the structure step says why) or could not be read to the end.
Result<StepReport> ValidateNumbers(const NumbersOptions& options, const StepProgress& progress);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_NUMBERS_H_
