// SPDX-License-Identifier: Apache-2.0
// hallmark receipt: runs the cases of a level and writes what came of them.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "conformance/harness/paths.h"
#include "receipts/emit/issue.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

struct ReceiptFlags {
  std::string directory;
  std::string out;
  std::optional<std::string> level;
  EngineFlags engine;
  DraftFlags draft;
};

Result<int> Run(const ReceiptFlags& flags) {
  TRY(CheckDirectory(flags.directory));
  const std::string named = flags.level.value_or(flags.draft.drafter ? "L3" : "L2");
  const auto level = ParseLevel(named);
  if (!level) {
    return Fail(Code::kOutOfRange, "found \"" + named + "\", expected L0, L1, L2 or L3",
                {.flag = "--level"});
  }
  if ((*level == Level::kL3) != flags.draft.drafter.has_value()) {
    return Fail(Code::kOutOfRange,
                *level == Level::kL3
                    ? "level L3 shows that drafting changes nothing, expected the drafter's folder"
                    : "found a drafter at level " + named + ", expected one at L3 alone",
                {.flag = "--drafter"});
  }
  if (flags.out.empty()) {
    return Fail(Code::kOutOfRange, "found \"\", expected the folder to write into",
                {.flag = "--out"});
  }
  SessionOptions options = TRY(ParseEngineFlags(flags.engine));
  TRY(ParseDraftFlags(flags.draft, options));
  options.poison_pages = true;  // a key that was never stored must not pass for one
  Progress progress;
  progress.Show("opening " + flags.directory);
  const std::unique_ptr<Session> session = TRY(OpenSession(flags.directory, options));
  const IssuedReceipt issued = TRY(
      IssueReceipt(*session, {.level = *level,
                              .golden = GoldenPath(""),
                              .out_directory = flags.out,
                              .on_case = [&](size_t index, size_t total, std::string_view name) {
                                progress.Show("[" + std::to_string(index) + "/" +
                                              std::to_string(total) + "] " + std::string(name));
                              }}));
  progress.Clear();
  const int printed = PrintText(issued.summary + "receipt      " + issued.path + "\nsummary      " +
                                issued.summary_path + "\n");
  const int verdict = ExitCode(issued.verdict.outcome);
  return verdict != kExitOk ? verdict : printed;
}

}  // namespace

void AddReceiptCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<ReceiptFlags>();
  CLI::App* command = program.add_subcommand(
      "receipt",
      "Run the cases of a level on a checkpoint and write a receipt of what they showed");
  command->add_option("DIR", flags->directory, "The checkpoint's folder")
      ->required()
      ->type_name("");
  command->add_option("--out", flags->out, "The folder to write into; made if absent")
      ->required()
      ->type_name("FOLDER");
  AddTextFlag(*command, "--level", flags->level,
              "L0 format; L1 also kernels and text; L2 also the whole model; L3 also drafting, "
              "resuming and streams [L3 with --drafter, else L2]")
      ->type_name("LEVEL");
  AddDraftFlags(*command, flags->draft);
  AddEngineFlags(*command, flags->engine);
  command->footer(
      "Writes <level>.<device>.<digest>.intoto.jsonl, an in-toto statement, and a summary for\n"
      "people beside it. The core digest is the line to compare with someone else's: it is the\n"
      "same on every CPU, with any number of threads. Exit code 0: every case of the level "
      "passed;\n"
      "1: one failed or is missing; 3: one could not be decided.\n\n"
      "Examples:\n"
      "  hallmark receipt golden/models/scribe-11m-exl3 --out my-receipts\n"
      "  hallmark receipt golden/models/scribe-11m-exl3 --drafter golden/models/scribe-11m-dflash2 "
      "\\\n"
      "    --out my-receipts\n"
      "  hallmark receipt DIR --level L0 --out my-receipts\n"
      "  hallmark receipt DIR --kv fp8 --threads 8 --out my-receipts");
  command->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = Run(*flags);
      return code.has_value() ? *code : ReportError(code.error(), false);
    };
  });
}

}  // namespace hallmark
