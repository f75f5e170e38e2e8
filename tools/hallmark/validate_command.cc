// SPDX-License-Identifier: Apache-2.0
// hallmark validate: what a vendor runs before a checkpoint is published.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

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

Result<int> Run(const ValidateFlags& flags) {
  TRY(CheckDirectory(flags.directory));
  if (flags.drafter) TRY(CheckDirectory(*flags.drafter, "--drafter"));
  Progress line;
  const Validation validation = Validate(
      {.folder = flags.directory, .drafter = flags.drafter},
      [&line](std::string_view what, uint64_t done, uint64_t total) {
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
  command->add_flag("--json", flags->json, "One JSON object instead of text");
  command->footer(
      "Reads headers and documents, no weights: folder, index, configs, tensors, tokenizer, stop\n"
      "ids, chat template and licence, all held against each other. Every fault that does not\n"
      "follow from another is listed, the gravest first, with a check's stable id. Exit code 0:\n"
      "accepted (warnings and notes allowed); 1: an error was found; 3: could not decide (a file\n"
      "could not be read, or changed meanwhile).\n\n"
      "Examples:\n"
      "  hallmark validate golden/models/scribe-11m-exl3\n"
      "  hallmark validate DIR --drafter golden/models/scribe-11m-dflash2 --json");
  command->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = Run(*flags);
      return code.has_value() ? *code : ReportError(code.error(), flags->json);
    };
  });
}

}  // namespace hallmark
