// SPDX-License-Identifier: Apache-2.0
// StepFindings: what a step that judges values has to say, each by the id of its check, ordered and
// bounded for a report. The step brings its own list of checks. Not for the structure step, whose
// checks are of another kind (checks.h).
#ifndef HALLMARK_CONFORMANCE_VALIDATE_STEP_FINDINGS_H_
#define HALLMARK_CONFORMANCE_VALIDATE_STEP_FINDINGS_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "conformance/validate/finding.h"

namespace hallmark {

struct StepCheck {
  std::string_view id;
  Severity severity = Severity::kError;
  std::string_view clause;
  std::string_view action;  // one sentence
};

class StepFindings {
 public:
  // Findings of one check that are told in full; the last of them counts the rest.
  static constexpr size_t kMost = 20;

  // `checks` outlives this; what stands higher explains what stands lower.
  explicit StepFindings(std::span<const StepCheck> checks) : checks_(checks) {}

  // `check` is on the list. A `clause` takes the place of the list's.
  void Add(std::string_view check, Error error, std::string_view clause = {});
  size_t CountOf(std::string_view check) const;

  // In the order of the list; equals in the order of their coming.
  std::vector<Finding> Sorted() const;

 private:
  std::span<const StepCheck> checks_;
  std::vector<Finding> findings_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_STEP_FINDINGS_H_
