// SPDX-License-Identifier: Apache-2.0
// hallmark: opens EXL3 checkpoints, runs them, and shows in receipts that the running was exact.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "receipts/emit/contract.h"
#include "receipts/emit/machine.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

constexpr char kDescription[] =
    "Hallmark opens dense qwen3_5 checkpoints (Qwen3.5, 3.6, 3.8) in the EXL3 format, runs them\n"
    "exactly, and proves it in receipts.\n"
    "DIR below is a checkpoint's folder: config.json, the .safetensors files and, for text, a\n"
    "tokenizer.json.";

constexpr char kFooter[] =
    "First steps, with the model that comes with the source:\n"
    "  hallmark inspect golden/models/scribe-11m-exl3\n"
    "  hallmark run golden/models/scribe-11m-exl3 --prompt \"In the beginning\"\n"
    "  hallmark receipt golden/models/scribe-11m-exl3 --out my-receipts\n"
    "'hallmark COMMAND --help' explains a command, with examples.\n"
    "\n"
    "Exit codes: 0 fine or conforming; 1 the checkpoint or the engine is at fault; 2 the command\n"
    "line is; 3 could not decide (a file could not be read, memory ran out).\n"
    "A refusal is one line on stderr: hallmark: <code>: <sentence> (<file, byte, tensor, flag>).";

std::string VersionText() {
  const ContractId contract = BuildContract();
  std::string text = "hallmark " + HallmarkVersion() + "\ncontract " +
                     std::to_string(contract.version) + " sha256:" + contract.sha256 + "\n";
  for (const std::string& id : ArithmeticIds()) text += "arithmetic " + id + "\n";
  return text;
}

bool AsksForJson(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) return true;
  }
  return false;
}

int Main(int argc, char** argv) {
  CLI::App program(kDescription, "hallmark");
  program.footer(kFooter);
  program.require_subcommand(0, 1);
  program.get_formatter()->column_width(34);
  bool version = false;
  program.add_flag("--version", version,
                   "Version, the contract's digest and the arithmetic ids, then exit");
  CommandRun run;
  AddInspectCommand(program, run);
  AddPlanCommand(program, run);
  AddRunCommand(program, run);
  AddLogitsCommand(program, run);
  AddDraftCommand(program, run);
  AddReceiptCommand(program, run);
  AddVerifyCommand(program, run);
  AddValidateCommand(program, run);
  AddDiffCommand(program, run);
  AddSignCommand(program, run);
  AddKeygenCommand(program, run);
  AddBenchCommand(program, run);
  AddSynthCommand(program, run);

  // The parser speaks in exceptions; they end here.
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return PrintText(program.help());
  } catch (const CLI::Success& success) {
    return program.exit(success);
  } catch (const CLI::ParseError& error) {
    return ReportUsage(std::string(error.what()) + "; see hallmark --help",
                       AsksForJson(argc, argv));
  }
  if (version) return PrintText(VersionText());
  if (run) return run();
  return ReportUsage("expected a command; see hallmark --help", AsksForJson(argc, argv));
}

}  // namespace
}  // namespace hallmark

int main(int argc, char** argv) {
  // A reader that has gone is a write that fails (exit 3), not a death by signal.
  std::signal(SIGPIPE, SIG_IGN);
  // So is a file that may not grow: what was begun is then taken away.
  std::signal(SIGXFSZ, SIG_IGN);
  // Memory that runs out where no Result says so must not look like a crash.
  try {
    return hallmark::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("hallmark: resource: memory ran out\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hallmark: internal: %s\n", error.what());
  }
  return hallmark::kExitUndecided;
}
