// SPDX-License-Identifier: Apache-2.0
// hallmark validate: what a vendor runs before a checkpoint is published.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "conformance/validate/behaviour.h"
#include "conformance/validate/numbers.h"
#include "conformance/validate/report_html.h"
#include "conformance/validate/source.h"
#include "conformance/validate/validation.h"
#include "conformance/validate/validation_json.h"
#include "receipts/emit/atomic_file.h"
#include "receipts/emit/machine.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

struct ValidateFlags {
  std::string directory;
  std::optional<std::string> drafter, reference, windows, report;
  std::vector<std::string> steps;
  EngineFlags engine;
  bool digests = false, json = false;
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

constexpr std::string_view kNumbers = "numbers";
constexpr std::string_view kSource = "source";

bool Wants(const ValidateFlags& flags, std::string_view step) {
  return flags.steps.empty() ||
         std::find(flags.steps.begin(), flags.steps.end(), step) != flags.steps.end();
}

// What is wrong with the file is wrong with the flag, unless the system kept it from being read.
Result<std::vector<TokenWindow>> Windows(const ValidateFlags& flags) {
  if (!flags.windows) return std::vector<TokenWindow>{};
  if (!flags.reference) {
    return Fail(Code::kOutOfRange,
                "only the source step compares on windows, and there is no --reference",
                {.flag = "--windows"});
  }
  auto windows = ReadWindows(*flags.windows, WindowLimitsOf(flags.directory, *flags.reference));
  if (windows.has_value()) return windows;
  Error error = std::move(windows).error();
  if (error.code != Code::kIo) error.where.flag = "--windows";
  return Fail(std::move(error));
}

// Those that were asked for, in the order in which they rest on each other; by default all for
// which there is what they need.
Result<std::vector<ValidationStep>> Steps(const ValidateFlags& flags,
                                          const ValidationOptions& options) {
  SessionOptions session = TRY(ParseEngineFlags(flags.engine));
  SessionOptions drafted = session;
  drafted.drafter = flags.drafter.value_or("");
  std::vector<ValidationStep> all = {
      StructureStep(options),
      {.name = std::string(kNumbers),
       .run =
           [options](const StepProgress& progress) {
             return ValidateNumbers(
                 {.folder = options.folder, .drafter = options.drafter, .digests = options.digests},
                 progress);
           }},
      {.name = "behaviour",
       .run = [options = BehaviourOptions{.folder = options.folder, .session = drafted}](
                  const StepProgress& progress) { return ValidateBehaviour(options, progress); }},
      {.name = std::string(kSource),
       .run = [options = SourceOptions{.folder = options.folder,
                                       .reference = flags.reference.value_or(""),
                                       .session = session,
                                       .windows = TRY(Windows(flags)),
                                       .windows_file = flags.windows.value_or("")}](
                  const StepProgress& progress) { return ValidateSource(options, progress); }}};
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
  if (!flags.reference && !flags.steps.empty() && Wants(flags, kSource)) {
    return Fail(Code::kOutOfRange, "the source step needs the source model's folder",
                {.flag = "--reference"});
  }
  if (flags.reference && !Wants(flags, kSource)) {
    return Fail(Code::kOutOfRange,
                "only the source step reads a reference, and it is not asked for",
                {.flag = "--reference"});
  }
  if (flags.digests && !Wants(flags, kNumbers)) {
    return Fail(Code::kOutOfRange,
                "only the numbers step reads shards whole, and it is not asked for",
                {.flag = "--digests"});
  }
  std::erase_if(all, [&flags](const ValidationStep& step) {
    return !Wants(flags, step.name) || (step.name == kSource && !flags.reference);
  });
  return all;
}

// Only a page may be written over: never a file of the model, not through a link either.
Status CheckReport(const std::string& path) {
  TRY(CheckOutputFile(path, "--report"));
  std::error_code none;
  const std::filesystem::path target = std::filesystem::canonical(path, none);
  for (const std::filesystem::path& name : {std::filesystem::path(path), target}) {
    if (name.empty() || name.extension() == ".html") continue;
    return Fail(Code::kOutOfRange, "found " + name.filename().string() + ", expected a name.html",
                {.file = path, .flag = "--report"});
  }
  return {};
}

Result<int> Run(const ValidateFlags& flags) {
  TRY(CheckDirectory(flags.directory));
  if (flags.drafter) TRY(CheckDirectory(*flags.drafter, "--drafter"));
  if (flags.reference) TRY(CheckDirectory(*flags.reference, "--reference"));
  if (flags.report) TRY(CheckReport(*flags.report));
  const ValidationOptions options{
      .folder = flags.directory, .drafter = flags.drafter, .digests = flags.digests};
  const std::vector<ValidationStep> steps = TRY(Steps(flags, options));
  Progress line;
  const Validation validation =
      Validate(options, steps, [&line](std::string_view what, uint64_t done, uint64_t total) {
        line.Show(std::string(what) + ": " + std::to_string(done) + " of " + std::to_string(total));
      });
  line.Clear();
  const Json json = ValidationJson(validation, HallmarkVersion());
  if (flags.report) TRY(WriteFileAtomically(*flags.report, ValidationHtml(json)));
  const int printed = flags.json ? PrintJson(json) : PrintText(ValidationText(validation));
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
  AddTextFlag(*command, "--reference", flags->reference,
              "The model that the checkpoint was quantized from: adds the source step")
      ->type_name("SRC");
  command
      ->add_option("--step", flags->steps,
                   "Run this step alone, or several: structure, numbers, behaviour, source [all]")
      ->type_name("STEP")
      ->allow_extra_args(false);
  AddTextFlag(
      *command, "--windows", flags->windows,
      "Compare predictions on these ids, a line each: {\"ids\": [1, 2, 3]} [8 windows of 256 "
      "ids, drawn from SRC]")
      ->type_name("FILE");
  command->add_flag("--digests", flags->digests,
                    "SHA-256 of the shards too, for a report to publish: numbers takes longer");
  AddTextFlag(*command, "--report", flags->report, "Also write a page for people, NAME.html")
      ->type_name("OUT");
  AddEngineFlags(*command, flags->engine);
  command->add_flag("--json", flags->json, "One JSON object instead of text");
  command->footer(
      "structure reads headers and documents: folder, index, configs, tensors, tokenizer, stop\n"
      "ids, chat template and licence, all held against each other. numbers reads every byte of\n"
      "every shard once. behaviour loads the model and runs it. source, with --reference, "
      "measures\n"
      "each tensor's error and how far predictions moved. Every fault that does not follow from\n"
      "another is listed, the gravest first, with a check's stable id, and each step says how "
      "much\n"
      "it compared. Exit code 0: accepted (warnings and notes allowed); 1: an error was found; 2: "
      "a\n"
      "flag or a file of windows is at fault; 3: could not decide (a file could not be read, or\n"
      "changed meanwhile, or a step compared nothing).\n\n"
      "Examples:\n"
      "  hallmark validate golden/models/scribe-11m-exl3\n"
      "  hallmark validate DIR --step structure\n"
      "  hallmark validate DIR --drafter golden/models/scribe-11m-dflash2 --json\n"
      "  hallmark validate DIR --reference SRC --windows windows.jsonl\n"
      "  hallmark validate DIR --reference SRC --digests --report report.html --json");
  command->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = Run(*flags);
      return code.has_value() ? *code : ReportError(code.error(), flags->json);
    };
  });
}

}  // namespace hallmark
