// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/validation_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/error_json.h"
#include "engine/base/printable.h"

namespace hallmark {
namespace {

constexpr std::array kGravestFirst = {Severity::kError, Severity::kWarning, Severity::kNote};

Json FindingJson(const Finding& finding) {
  return {{"severity", SeverityName(finding.severity)},
          {"clause", finding.clause},
          {"check", finding.check},
          {"code", CodeName(finding.error.code)},
          {"message", Utf8(finding.error.message)},
          {"where", LocatorJson(finding.error.where)},
          {"action", finding.action}};
}

std::string Line(std::string text) { return Printable(std::move(text), 1000); }

std::string FindingLine(const Finding& finding) {
  const std::string where = finding.error.where.ToString();
  return Line(std::string(SeverityName(finding.severity)) + ": " + finding.check + ": " +
              finding.error.message + (where.empty() ? "" : " (" + where + ")"));
}

std::string Counted(size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// " (2 cases, 488 finite rows)". Values by clause are among the step's lines.
std::string Compared(const StepReport& step) {
  std::string text;
  for (const auto& [what, count] : step.compared) {
    if (what.ends_with("_values")) continue;
    std::string words = what;
    std::ranges::replace(words, '_', ' ');
    text += (text.empty() ? " (" : ", ") + std::to_string(count) + " " + words;
  }
  return text.empty() ? "" : text + ")";
}

// Why a file has no digest; empty when each has one.
std::string WhyNoDigest(const Validation& validation) {
  if (validation.files.empty()) return "no step ran that lists files";
  if (std::ranges::none_of(validation.files, [](const auto& f) { return f.sha256.empty(); })) {
    return "";
  }
  if (validation.options.digests) return "the numbers step did not read the shards to their end";
  return "--digests takes those of shards, while the numbers step reads them";
}

std::string Files(const Validation& validation) {
  if (validation.files.empty()) return "";
  const auto without =
      std::ranges::count_if(validation.files, [](const auto& file) { return file.sha256.empty(); });
  return "\nfiles: " + std::to_string(validation.files.size()) +
         (without == 0
              ? ", each with its SHA-256 in --json and --report"
              : ", " + std::to_string(without) + " without SHA-256: " + WhyNoDigest(validation)) +
         "\n";
}

std::string Verdict(const Validation& validation) {
  const std::string folder = Line(validation.options.folder);
  const size_t errors = validation.Count(Severity::kError);
  const std::string rest = Counted(validation.Count(Severity::kWarning), "warning") + ", " +
                           Counted(validation.Count(Severity::kNote), "note");
  switch (validation.judgement()) {
    case Judgement::kAccepted:
      return "Accepted: " + folder + " conforms (" + rest + ").\n";
    case Judgement::kRejected:
      return "Rejected: " + folder + " does not conform (" + Counted(errors, "error") + ", " +
             rest + ").\n";
    case Judgement::kUndecided:
      break;
  }
  return "Undecided: whether " + folder + " conforms could not be seen (" +
         Counted(errors, "error") + ", " + rest + ").\n";
}

}  // namespace

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "error";
}

Json ValidationJson(const Validation& validation, const std::string& version) {
  Json steps = Json::array();
  for (const StepReport& step : validation.steps) {
    Json findings = Json::array();
    for (const Severity severity : kGravestFirst) {
      for (const Finding& finding : step.findings) {
        if (finding.severity == severity) findings.push_back(FindingJson(finding));
      }
    }
    steps.push_back({{"step", step.step},
                     {"verdict", JudgementName(JudgementOf(step))},
                     {"compared", step.compared},
                     {"findings", std::move(findings)},
                     {"facts", step.facts ? *step.facts : Json::object()}});
  }
  Json files = Json::array();
  for (const JudgedFile& file : validation.files) {
    files.push_back({{"folder", file.folder},
                     {"name", Utf8(file.name)},
                     {"bytes", file.stamp.bytes},
                     {"sha256", file.sha256.empty() ? Json(nullptr) : Json(file.sha256)}});
  }
  const std::string why = WhyNoDigest(validation);
  Json json = {{"schema", "urn:hallmark:schema:validation:v1"},
               {"version", version},
               {"directory", Utf8(validation.options.folder)},
               {"verdict", JudgementName(validation.judgement())},
               {"counts",
                {{"errors", validation.Count(Severity::kError)},
                 {"warnings", validation.Count(Severity::kWarning)},
                 {"notes", validation.Count(Severity::kNote)}}},
               {"files", std::move(files)},
               {"digests", {{"complete", why.empty()}, {"why", why}}},
               {"steps", std::move(steps)},
               {"not_run", validation.not_run}};
  if (validation.options.drafter) json["drafter"] = Utf8(*validation.options.drafter);
  return json;
}

std::string ValidationText(const Validation& validation) {
  const Finding* gravest = validation.gravest();
  std::string text = gravest != nullptr ? FindingLine(*gravest) : "nothing was found amiss";
  text += "\n";
  for (const StepReport& step : validation.steps) {
    text += "\n" + step.step + ": " + std::string(JudgementName(JudgementOf(step))) +
            Compared(step) + "\n";
    for (const std::string& line : step.lines) text += "  " + Line(line) + "\n";
    for (const Severity severity : kGravestFirst) {
      for (const Finding& finding : step.findings) {
        if (finding.severity != severity) continue;
        text += "  " + FindingLine(finding) + "\n";
        if (!finding.action.empty()) text += "      " + Line(finding.action) + "\n";
      }
    }
  }
  for (const std::string& step : validation.not_run) {
    text += "\n" + step + ": not run, since it rests on what was found before\n";
  }
  return text + Files(validation) + "\n" + Verdict(validation);
}

}  // namespace hallmark
