// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/step_findings.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/check.h"

namespace hallmark {

void StepFindings::Add(std::string_view check, Error error, std::string_view clause) {
  const auto found = std::find_if(checks_.begin(), checks_.end(),
                                  [check](const StepCheck& info) { return info.id == check; });
  CHECK(found != checks_.end());
  findings_.push_back({.severity = found->severity,
                       .clause = std::string(clause.empty() ? found->clause : clause),
                       .check = std::string(check),
                       .error = std::move(error),
                       .action = std::string(found->action)});
}

size_t StepFindings::CountOf(std::string_view check) const {
  return static_cast<size_t>(
      std::count_if(findings_.begin(), findings_.end(),
                    [check](const Finding& finding) { return finding.check == check; }));
}

std::vector<Finding> StepFindings::Sorted() const {
  std::vector<Finding> sorted;
  for (const StepCheck& info : checks_) {
    size_t count = 0;
    for (const Finding& finding : findings_) {
      if (finding.check != info.id) continue;
      if (++count <= kMost) sorted.push_back(finding);
    }
    if (count > kMost) {
      sorted.back().error.message +=
          "; and " + std::to_string(count - kMost) + " more findings like this";
    }
  }
  return sorted;
}

}  // namespace hallmark
