// SPDX-License-Identifier: Apache-2.0
// The source step of validation: a quantized checkpoint against the model it was made from. Tensor
// by tensor the normalized mean square error, held against what its width and codebook can reach;
// then both models on the same windows of tokens: KL(reference || checkpoint) and top-1 agreement.
// Clauses: format-reject for tensors that are another model's, model-golden for predictions. How
// much divergence is good enough is the vendor's choice: it is told, not judged.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_SOURCE_H_
#define HALLMARK_CONFORMANCE_VALIDATE_SOURCE_H_

#include <string>
#include <vector>

#include "conformance/validate/finding.h"
#include "conformance/validate/progress.h"
#include "conformance/validate/token_windows.h"
#include "engine/base/result.h"
#include "engine/run/session.h"

namespace hallmark {

struct SourceOptions {
  std::string folder;
  std::string reference;   // folder of the unquantized model
  SessionOptions session;  // what both run on; its drafter is not used
  int threads = 2;         // of the comparison of tensors
  // The ids to compare on, and the file they were read from; empty: sampled from the reference as
  // `sampled` says.
  std::vector<TokenWindow> windows;
  std::string windows_file;
  WindowOptions sampled;
  bool run = true;  // false: tensors alone, no model is loaded
};

// What both models must be able to run: the ids and positions of both, and as many tokens in all as
// kMostLogitBytes hold the logits of. A folder whose config cannot be read bounds nothing: whoever
// opens it says why.
inline constexpr uint64_t kMostLogitBytes = uint64_t{8} << 30;
WindowLimits WindowLimitsOf(const std::string& folder, const std::string& reference);

// Holds one tensor of both at a time, then one model after the other, and between them the
// reference's logits: 4 bytes for each id of the vocabulary and each token of the windows. An error
// is the system's, or a folder that does not open.
Result<StepReport> ValidateSource(const SourceOptions& options, const StepProgress& progress);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_SOURCE_H_
