// SPDX-License-Identifier: Apache-2.0
// Checks of the small plain tensors of a model: norms, whose factor must not be zero, and the decay
// rates and step biases of DeltaNet layers. Not of values that are not finite: the scan of all
// bytes finds those.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_VECTOR_CHECKS_H_
#define HALLMARK_CONFORMANCE_VALIDATE_VECTOR_CHECKS_H_

#include "conformance/validate/step_findings.h"
#include "engine/base/json.h"
#include "engine/base/result.h"
#include "engine/format/inventory.h"

namespace hallmark {

// Adds what is wrong to `findings`, by the ids of ValueChecks, and what was seen to `facts`.
Status JudgeVectors(const CheckpointInventory& inventory, StepFindings* findings, Json* facts);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_VECTOR_CHECKS_H_
