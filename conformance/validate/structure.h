// SPDX-License-Identifier: Apache-2.0
// The structure step of validation: everything that a checkpoint's folder, its documents and the
// headers of its shards say, held against each other. Clauses: format-accept, format-reject. Unlike
// Checkpoint::Open, which stops at the first fault, it goes on and collects every one that does not
// follow from another. Not for values: no data but codebook markers is read.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_STRUCTURE_H_
#define HALLMARK_CONFORMANCE_VALIDATE_STRUCTURE_H_

#include <optional>
#include <string>

#include "conformance/validate/finding.h"
#include "conformance/validate/progress.h"
#include "engine/base/result.h"

namespace hallmark {

struct StructureOptions {
  std::string folder;
  std::optional<std::string> drafter;  // a drafter's folder, held against the model too
};

// The gravest finding first. An error is one of the system alone (kIo, kResource): what a file says
// is a finding.
Result<StepReport> ValidateStructure(const StructureOptions& options, const StepProgress& progress);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_STRUCTURE_H_
