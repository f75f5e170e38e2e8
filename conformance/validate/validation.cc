// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/validation.h"

#include <array>
#include <functional>
#include <utility>

#include "conformance/validate/checks.h"
#include "conformance/validate/structure.h"

namespace hallmark {
namespace {

constexpr std::string_view kStructure = "structure";
constexpr std::string_view kStepFailed = "step-failed";
constexpr std::string_view kNothingCompared = "nothing-compared";
constexpr std::string_view kFileChanged = "file-changed";

// What the system or a device denied, and faults of our own, say nothing about the checkpoint.
bool LeavesOpen(const Finding& finding) {
  if (finding.check == kStepFailed) return true;
  switch (finding.error.code) {
    case Code::kIo:
    case Code::kResource:
    case Code::kDevice:
    case Code::kInternal:
      return true;
    default:
      return false;
  }
}

template <typename Steps>
Judgement JudgementOver(const Steps& steps) {
  bool open = false;
  bool error = false;
  for (const StepReport& step : steps) {
    for (const Finding& finding : step.findings) {
      if (finding.check == kFileChanged) return Judgement::kUndecided;
      if (finding.severity != Severity::kError) continue;
      (LeavesOpen(finding) ? open : error) = true;
    }
  }
  if (error) return Judgement::kRejected;
  return open ? Judgement::kUndecided : Judgement::kAccepted;
}

StepReport Report(std::string_view name, Result<StepReport> result) {
  if (result.has_value()) return std::move(*result);
  StepReport report{.step = std::string(name)};
  report.findings.push_back({.severity = Severity::kError,
                             .clause = "format-accept",
                             .check = std::string(kStepFailed),
                             .error = std::move(result).error(),
                             .action = "Remove the cause, then validate again."});
  return report;
}

// An acceptance that rests on nothing becomes a question.
StepReport WithoutEmptyAcceptance(StepReport report) {
  if (JudgementOf(report) != Judgement::kAccepted) return report;
  std::string why = report.compared.empty() ? "the step counted nothing that it compared" : "";
  for (const auto& [what, count] : report.compared) {
    if (count == 0) why = "the step compared no " + what;
  }
  if (why.empty()) return report;
  report.findings.push_back({.severity = Severity::kError,
                             .clause = "format-accept",
                             .check = std::string(kNothingCompared),
                             .error = {Code::kInternal, std::move(why)},
                             .action = "Report this: nothing was shown of the checkpoint."});
  return report;
}

// Of the last step that ran. A file is told of once.
void TellChanged(const std::vector<JudgedFile>& changed, Validation* validation) {
  FindingList list;
  for (const JudgedFile& file : changed) {
    bool told = false;
    for (const StepReport& step : validation->steps) {
      for (const Finding& finding : step.findings) {
        told = told || (finding.check == kFileChanged && finding.error.where.file == file.path);
      }
    }
    if (told) continue;
    list.Add(kFileChanged, {.code = Code::kIo,
                            .message = "the file changed after it was read",
                            .where = {.file = file.path}});
  }
  for (Finding& finding : list.Sorted()) {
    validation->steps.back().findings.push_back(std::move(finding));
  }
}

}  // namespace

std::string_view JudgementName(Judgement judgement) {
  switch (judgement) {
    case Judgement::kAccepted:
      return "accepted";
    case Judgement::kRejected:
      return "rejected";
    case Judgement::kUndecided:
      return "undecided";
  }
  return "undecided";
}

Judgement JudgementOf(const StepReport& step) {
  return JudgementOver(std::array<std::reference_wrapper<const StepReport>, 1>{step});
}

Judgement Validation::judgement() const { return JudgementOver(steps); }

size_t Validation::Count(Severity severity) const {
  size_t count = 0;
  for (const StepReport& step : steps) {
    for (const Finding& finding : step.findings) count += finding.severity == severity ? 1 : 0;
  }
  return count;
}

const Finding* Validation::gravest() const {
  const Finding* gravest = nullptr;
  for (const StepReport& step : steps) {
    for (const Finding& finding : step.findings) {
      if (gravest == nullptr || finding.severity > gravest->severity) gravest = &finding;
    }
  }
  return gravest;
}

ValidationStep StructureStep(const ValidationOptions& options) {
  return {.name = std::string(kStructure), .run = [options](const StepProgress& progress) {
            return ValidateStructure({.folder = options.folder, .drafter = options.drafter},
                                     progress);
          }};
}

Validation Validate(const ValidationOptions& options, const std::vector<ValidationStep>& steps,
                    const StepProgress& progress) {
  Validation validation{.options = options};
  bool opens = true;
  for (const ValidationStep& step : steps) {
    if (!opens) {
      validation.not_run.push_back(step.name);
      continue;
    }
    validation.steps.push_back(WithoutEmptyAcceptance(Report(step.name, step.run(progress))));
    TellChanged(AddFiles(validation.steps.back().files, &validation.files), &validation);
    if (step.name != kStructure) continue;
    opens = JudgementOf(validation.steps.back()) == Judgement::kAccepted;
  }
  TellChanged(ChangedFiles(validation.files), &validation);
  return validation;
}

}  // namespace hallmark
