// SPDX-License-Identifier: Apache-2.0
// The tolerance register (docs/tolerances.json), embedded at build time: the only place a test or a
// receipt may take an allowed difference from. Not for bounds that decide acceptance of input.
#ifndef HALLMARK_CONFORMANCE_HARNESS_TOLERANCES_H_
#define HALLMARK_CONFORMANCE_HARNESS_TOLERANCES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace hallmark {

struct ToleranceEntry {
  std::string id;                  // words joined by '-'
  std::string clause;              // docs/contract
  std::string kind;                // rms, kl, margin, ulps, absolute, relative
  std::string unit;                // what one is
  std::string reason;              // why a difference is allowed at all
  double value = 0;                // the allowed difference, > 0
  std::optional<double> measured;  // seen when the value was set; an rms or kl is at most twice it
};

// The allowed difference of one entry. Aborts on an unknown id or a malformed register: a test that
// asks for a tolerance nobody registered must not go green.
double Tolerance(std::string_view id);

// Reads a register; kMalformed with a JSON pointer when a member is missing, unknown, of the wrong
// type or out of range, or an id occurs twice. `file` names the source in errors.
Result<std::vector<ToleranceEntry>> ParseTolerances(std::string_view text, const std::string& file);

// The bytes of the register this build carries; receipts name their SHA-256.
std::string_view TolerancesText();

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_TOLERANCES_H_
