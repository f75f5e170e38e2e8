// SPDX-License-Identifier: Apache-2.0
// hallmark inspect: what a checkpoint holds, from headers alone.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/hallmark/command.h"
#include "tools/hallmark/inspection.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

struct InspectFlags {
  std::string directory;
  bool json = false;
};

Result<int> Run(const InspectFlags& flags) {
  TRY(CheckDirectory(flags.directory));
  const Checkpoint checkpoint = TRY(Checkpoint::Open(flags.directory));
  const CheckpointInventory inventory = TRY(TakeInventory(checkpoint));
  const Inspection inspection = Inspect(inventory);
  if (flags.json) return PrintJson(InspectionJson(inspection, checkpoint, inventory));
  return PrintText(InspectionText(inspection, checkpoint, inventory));
}

}  // namespace

void AddInspectCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command = program.add_subcommand(
      "inspect", "Show what a checkpoint holds: layers, widths, codebooks, bytes");
  command->add_option("DIR", flags->directory, "The checkpoint's folder")
      ->required()
      ->type_name("");
  command->add_flag("--json", flags->json, "One JSON object instead of text");
  command->footer(
      "Reads headers alone, so it takes no time on any size, and checks them on the way: a\n"
      "checkpoint whose headers are at fault is refused with tensor, byte and reason (exit code "
      "1).\n"
      "Parts that are never loaded (model.visual.*, mtp.*) are listed as unused.\n\n"
      "Examples:\n"
      "  hallmark inspect golden/models/scribe-11m-exl3\n"
      "  hallmark inspect DIR --json");
  command->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = Run(*flags);
      return code.has_value() ? *code : ReportError(code.error(), flags->json);
    };
  });
}

}  // namespace hallmark
