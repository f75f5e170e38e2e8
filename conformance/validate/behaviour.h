// SPDX-License-Identifier: Apache-2.0
// The behaviour step of validation: the model is run, on prompts that any vocabulary has and, where
// there is a tokenizer, on short texts. Logits must be finite and alive, inputs of EXL3 linears
// must stay within fp16, and cases of the contract must hold (conformance/cases); with a drafter,
// the cases of lanes, and drafts must land. Not for how good a model is: the source step measures
// that.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_BEHAVIOUR_H_
#define HALLMARK_CONFORMANCE_VALIDATE_BEHAVIOUR_H_

#include <memory>
#include <string>
#include <vector>

#include "conformance/validate/finding.h"
#include "conformance/validate/progress.h"
#include "engine/base/result.h"
#include "engine/run/session.h"

namespace hallmark {

struct BehaviourOptions {
  std::string folder;
  SessionOptions session;  // device, threads, cache type, drafter
  // Cases to run, by the beginning of "clause/case": {""} is every case of levels L2 and L3. Empty:
  // one cut, one width and, with a drafter, those of drafting and of resumed prompts.
  std::vector<std::string> cases;
};

// What the checkpoint is at fault for is a finding, that it does not open among it. An error is the
// system's or the device's, or kOutOfRange for `cases` that name none.
Result<StepReport> ValidateBehaviour(const BehaviourOptions& options, const StepProgress& progress);
// The same on a backend of the caller's whose memory is the host's; the session's device, tier and
// threads are its own.
Result<StepReport> ValidateBehaviour(const BehaviourOptions& options,
                                     std::unique_ptr<Backend> backend,
                                     const StepProgress& progress);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_BEHAVIOUR_H_
