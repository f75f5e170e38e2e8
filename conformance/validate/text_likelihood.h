// SPDX-License-Identifier: Apache-2.0
// TextLikelihood: how likely a model finds a few built-in lines of plain text, in prose, code and
// figures. Enough to tell a model that has learned something from one that has lost it; no measure
// of quality.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_TEXT_LIKELIHOOD_H_
#define HALLMARK_CONFORMANCE_VALIDATE_TEXT_LIKELIHOOD_H_

#include <cstdint>

#include "conformance/validate/progress.h"
#include "engine/base/result.h"

namespace hallmark {

class Session;

struct TextLikelihood {
  int64_t texts = 0;
  int64_t tokens = 0;  // that were predicted: all but the first of each text
  double sum_nll = 0;  // nat

  double mean_nll() const { return tokens == 0 ? 0 : sum_nll / static_cast<double>(tokens); }
};

// The session has a tokenizer. Ids that it cannot draw, and texts of one token, are left out.
Result<TextLikelihood> MeasureTexts(Session& session, const StepProgress& progress);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_TEXT_LIKELIHOOD_H_
