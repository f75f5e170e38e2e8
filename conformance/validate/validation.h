// SPDX-License-Identifier: Apache-2.0
// Validation: the steps that judge a checkpoint for its vendor, and the verdict over all of them.
// Clauses: format-accept, format-reject. One step's findings never hide another's; a step that
// could not be carried out leaves the question open, and an open question is never an acceptance.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_VALIDATION_H_
#define HALLMARK_CONFORMANCE_VALIDATE_VALIDATION_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/validate/finding.h"
#include "conformance/validate/progress.h"
#include "engine/base/result.h"

namespace hallmark {

struct ValidationOptions {
  std::string folder;
  std::optional<std::string> drafter;
  bool digests = false;  // of shards too: numbers takes them
};

enum class Judgement {
  kAccepted,   // warnings and notes allowed
  kRejected,   // an error was found
  kUndecided,  // something could not be read or did not hold still
};
std::string_view JudgementName(Judgement judgement);  // "accepted", "rejected", "undecided"

// One step: its name and what carries it out.
struct ValidationStep {
  std::string name;
  std::function<Result<StepReport>(const StepProgress&)> run;
};

struct Validation {
  ValidationOptions options;
  std::vector<StepReport> steps;     // in the order in which they ran
  std::vector<JudgedFile> files;     // that the steps read
  std::vector<std::string> not_run;  // steps that rest on one which found errors

  // Over all steps. A file that changed leaves everything open; else an error that was found
  // stands, whatever could not be decided beside it.
  Judgement judgement() const;
  size_t Count(Severity severity) const;
  // The first finding to act on: an error before a warning before a note, the earliest step first.
  const Finding* gravest() const;
};
Judgement JudgementOf(const StepReport& step);

ValidationStep StructureStep(const ValidationOptions& options);

// Runs the steps in order. A step's error becomes its one finding, "step-failed"; to one that would
// accept and compared nothing, "nothing-compared" is added: that is undecided. What stands after
// a structure step that does not accept is not run: the folder would not open. At the end every
// file that was judged is looked at again: one that changed meanwhile is "file-changed".
Validation Validate(const ValidationOptions& options, const std::vector<ValidationStep>& steps,
                    const StepProgress& progress);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_VALIDATION_H_
