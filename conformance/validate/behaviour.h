// SPDX-License-Identifier: Apache-2.0
// The behaviour step of validation: the model is run, on prompts that any vocabulary has and, where
// there is a tokenizer, on short texts. Logits must be finite and alive, inputs of EXL3 linears
// must stay within fp16, and cases of the contract must hold (conformance/cases); with a drafter,
// the cases of lanes, and drafts must land. Not for how good a model is: the source step measures
// that.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_BEHAVIOUR_H_
#define HALLMARK_CONFORMANCE_VALIDATE_BEHAVIOUR_H_

#include <string>

#include "conformance/validate/finding.h"
#include "conformance/validate/progress.h"
#include "engine/base/result.h"
#include "engine/run/session.h"

namespace hallmark {

struct BehaviourOptions {
  std::string folder;
  SessionOptions session;  // device, threads, cache type, drafter
  // Every case of levels L2 and L3; else one cut, one width and, with a drafter, the cases of
  // drafting and of resumed prompts.
  bool all_cases = false;
};

// What the checkpoint is at fault for is a finding, that it does not open among it. An error is the
// system's or the device's.
Result<StepReport> ValidateBehaviour(const BehaviourOptions& options, const StepProgress& progress);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_BEHAVIOUR_H_
