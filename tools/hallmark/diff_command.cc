// SPDX-License-Identifier: Apache-2.0
// hallmark diff: two receipts side by side.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/mapped_file.h"
#include "receipts/verify/compare.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

struct DiffFlags {
  std::string a;
  std::string b;
  bool json = false;
};

Result<Json> CoreOf(const std::string& path) {
  const MappedFile file = TRY(MappedFile::Open(path));
  // By its whole path: two receipts that agree have one name.
  auto core =
      verify::ReadCore(verify::BuiltInKnowledge(), path,
                       {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  TRY(file.Intact());
  return core;
}

Result<int> Run(const DiffFlags& flags) {
  const Json core_a = TRY(CoreOf(flags.a));
  const Json core_b = TRY(CoreOf(flags.b));
  const verify::Comparison comparison = verify::CompareReceipts(core_a, core_b);
  const int printed = flags.json ? PrintJson(verify::ComparisonJson(comparison))
                                 : PrintText(verify::ComparisonText(comparison));
  const int code = verify::ExitCodeOf(comparison);
  return code != kExitOk ? code : printed;
}

}  // namespace

void AddDiffCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<DiffFlags>();
  CLI::App* command =
      program.add_subcommand("diff", "Compare two receipts: equal, differs, or not comparable");
  command->add_option("A", flags->a, "A receipt or a signed envelope")->required()->type_name("");
  command->add_option("B", flags->b, "Another one")->required()->type_name("");
  command->add_flag("--json", flags->json, "One JSON object instead of text");
  command->footer(
      "Receipts of different arithmetic ids, checkpoints, levels, settings or suites are not\n"
      "comparable, and it says which; their rows are never called different. Judges neither: that\n"
      "is 'hallmark verify'. Exit code 0: equal; 1: differs; 3: not comparable, or not "
      "readable.\n\n"
      "Examples:\n"
      "  hallmark diff MINE THEIRS\n"
      "  hallmark diff MINE THEIRS --json");
  command->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = Run(*flags);
      if (code.has_value()) return *code;
      // A file that is no receipt decides nothing about the other one.
      ReportError(code.error(), flags->json);
      return kExitUndecided;
    };
  });
}

}  // namespace hallmark
