// SPDX-License-Identifier: Apache-2.0
// hallmark validate: what a vendor runs before a checkpoint is published.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "conformance/validate/numbers.h"
#include "conformance/validate/validation.h"
#include "conformance/validate/validation_json.h"
#include "receipts/emit/machine.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

struct ValidateFlags {
  std::string directory;
  std::optional<std::string> drafter;
  std::vector<std::string> steps;
  bool json = false;
};

int ExitCodeOf(Judgement judgement) {
  switch (judgement) {
    case Judgement::kAccepted:
      return kExitOk;
    case Judgement::kRejected:
      return kExitNonConforming;
    case Judgement::kUndecided:
      break;
  }
  return kExitUndecided;
}

// Those that were asked for, in the order in which they rest on each other; all of them by default.
Result<std::vector<ValidationStep>> Steps(const ValidateFlags& flags,
                                          const ValidationOptions& options) {
  std::vector<ValidationStep> all = {
      StructureStep(options),
      {.name = "numbers", .run = [folder = options.folder](const StepProgress& progress) {
         return ValidateNumbers({.folder = folder}, progress);
       }}};
  std::string names;
  for (const ValidationStep& step : all) names += (names.empty() ? "" : ", ") + step.name;
  for (const std::string& wanted : flags.steps) {
    const bool known = std::any_of(all.begin(), all.end(), [&wanted](const ValidationStep& step) {
      return step.name == wanted;
    });
    if (known) continue;
    return Fail(Code::kNotFound, "found \"" + wanted + "\", expected one of " + names,
                {.flag = "--step"});
  }
  if (flags.steps.empty()) return all;
  std::erase_if(all, [&flags](const ValidationStep& step) {
    return std::find(flags.steps.begin(), flags.steps.end(), step.name) == flags.steps.end();
  });
  return all;
}

Result<int> Run(const ValidateFlags& flags) {
  TRY(CheckDirectory(flags.directory));
  if (flags.drafter) TRY(CheckDirectory(*flags.drafter, "--drafter"));
  const ValidationOptions options{.folder = flags.directory, .drafter = flags.drafter};
  const std::vector<ValidationStep> steps = TRY(Steps(flags, options));
  Progress line;
  const Validation validation =
      Validate(options, steps, [&line](std::string_view what, uint64_t done, uint64_t total) {
        line.Show(std::string(what) + ": " + std::to_string(done) + " of " + std::to_string(total));
      });
  line.Clear();
  const int printed = flags.json ? PrintJson(ValidationJson(validation, HallmarkVersion()))
                                 : PrintText(ValidationText(validation));
  const int code = ExitCodeOf(validation.judgement());
  return code != kExitOk ? code : printed;
}

}  // namespace

void AddValidateCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<ValidateFlags>();
  CLI::App* command = program.add_subcommand(
      "validate", "Judge a checkpoint before it is published: every fault, its place, what to do");
  command->add_option("DIR", flags->directory, "The checkpoint's folder")
      ->required()
      ->type_name("");
  AddTextFlag(*command, "--drafter", flags->drafter,
              "Also judge this drafter's folder, and whether it fits the model")
      ->type_name("D");
  command
      ->add_option("--step", flags->steps,
                   "Run this step alone, or several: structure, numbers [all of them]")
      ->type_name("STEP")
      ->allow_extra_args(false);
  command->add_flag("--json", flags->json, "One JSON object instead of text");
  command->footer(
      "structure reads headers and documents: folder, index, configs, tensors, tokenizer, stop\n"
      "ids, chat template and licence, all held against each other. numbers reads every byte of\n"
      "every shard once. Every fault that does not follow from another is listed, the gravest\n"
      "first, with a check's stable id. Exit code 0: accepted (warnings and notes allowed); 1: an\n"
      "error was found; 3: could not decide (a file could not be read, or changed meanwhile).\n\n"
      "Examples:\n"
      "  hallmark validate golden/models/scribe-11m-exl3\n"
      "  hallmark validate DIR --step structure\n"
      "  hallmark validate DIR --drafter golden/models/scribe-11m-dflash2 --json");
  command->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = Run(*flags);
      return code.has_value() ? *code : ReportError(code.error(), flags->json);
    };
  });
}

}  // namespace hallmark
