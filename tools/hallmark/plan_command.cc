// SPDX-License-Identifier: Apache-2.0
// hallmark plan: what memory a checkpoint takes on a GPU and what fits into it, from headers alone
// and without a GPU.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "engine/draft/drafter_plan.h"
#include "engine/format/checkpoint.h"
#include "engine/run/scheduler.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/plan_text.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

struct PlanFlags {
  std::string directory;
  std::string vram;
  std::string kv = "bf16";
  std::string embedding = "device";
  std::string kept = "1GiB";
  std::optional<std::string> context, streams;
  DraftFlags draft;
  bool integrated = false;
  bool json = false;
};

Result<MemoryPlanOptions> ParseOptions(const PlanFlags& flags) {
  MemoryPlanOptions options;
  options.kv = TRY(ParseEngineFlags({.kv = flags.kv})).kv;
  if (flags.embedding != "device" && flags.embedding != "mapped") {
    return Fail(Code::kOutOfRange, "found \"" + flags.embedding + "\", expected device or mapped",
                {.flag = "--embedding"});
  }
  if (flags.embedding == "mapped") options.tables = TablePlacement::kMapped;
  options.integrated = flags.integrated;
  options.kept_bytes = TRY(ParseBytes(flags.kept, "--kept"));
  return options;
}

Result<int> Run(const PlanFlags& flags) {
  PlanReport report{.directory = flags.directory};
  report.budget = TRY(ParseBytes(flags.vram, "--vram"));
  report.options = TRY(ParseOptions(flags));
  TRY(CheckDirectory(flags.directory));
  SessionOptions session;
  TRY(ParseDraftFlags(flags.draft, session));
  report.drafter = session.drafter;

  const Checkpoint checkpoint = TRY(Checkpoint::Open(flags.directory));
  const CheckpointInventory inventory = TRY(TakeInventory(checkpoint));
  const ModelConfig& config = checkpoint.config();
  std::optional<DrafterMemory> drafter;
  if (!report.drafter.empty()) {
    const DrafterCheckpoint opened = TRY(DrafterCheckpoint::Open(report.drafter));
    TRY(CheckDrafterFits(opened.config(), config));
    const DrafterInventory tensors = TRY(TakeDrafterInventory(opened));
    auto planned = PlanDrafter(tensors, opened.config(), session.drafter_options, inventory.head);
    drafter = TRY(NameFlag(std::move(planned), "--draft-vocab"));
  }
  report.plan = MakeMemoryPlan(inventory, config, drafter ? &*drafter : nullptr, report.options);
  const MemoryPlan& plan = report.plan;

  PlannedStreams asked{.context = 0, .streams = 1};
  if (flags.streams) {
    asked.streams = TRY(ParseInteger(*flags.streams, "--streams", 1, kMaxStreams));
  }
  if (flags.context) {
    asked.context = TRY(ParseInteger(*flags.context, "--context", 1, config.max_positions));
  }
  report.one_stream_context = plan.LargestContext(report.budget, 1);
  if (plan.TotalBytes(asked.streams, std::max<int64_t>(asked.context, 1)) > report.budget) {
    const StreamsAsked least{.streams = asked.streams,
                             .context = std::max<int64_t>(asked.context, 1)};
    return Fail(Code::kOutOfRange, RefusalSentence(plan, report.budget, least),
                {.file = report.directory});
  }
  std::set<int64_t> contexts = {std::min(kUsualContext, config.max_positions)};
  if (flags.context) contexts.insert(asked.context);
  for (const int64_t context : contexts) {
    report.streams.push_back({context, plan.MostStreams(report.budget, context, kMaxStreams)});
  }
  report.chosen = asked;
  if (!flags.context) report.chosen.context = plan.LargestContext(report.budget, asked.streams);
  return flags.json ? PrintJson(PlanJson(report)) : PrintText(PlanText(report));
}

}  // namespace

void AddPlanCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = program.add_subcommand(
      "plan", "Show what memory a checkpoint takes on a GPU, and what context and streams fit");
  command->add_option("DIR", flags->directory, "The checkpoint's folder")
      ->required()
      ->type_name("");
  command->add_option("--vram", flags->vram, "Device memory to fit into, such as 24GiB or 24000MiB")
      ->required()
      ->type_name("SIZE");
  command
      ->add_option("--kv", flags->kv,
                   "Type of stored keys and values: bf16, or fp8 for half the memory [bf16]")
      ->type_name("TYPE");
  command
      ->add_option("--embedding", flags->embedding,
                   "device; or mapped: in host memory, which the GPU reads in place [device]")
      ->type_name("WHERE");
  AddTextFlag(*command, "--context", flags->context, "Positions that each stream shall hold")
      ->type_name("N");
  AddTextFlag(*command, "--streams", flags->streams, "Streams that shall run at once, 1 to 8 [1]")
      ->type_name("N");
  command->add_option("--kept", flags->kept, "Bound of kept states; 0: none are kept [1GiB]")
      ->type_name("SIZE");
  command->add_flag("--integrated", flags->integrated,
                    "The GPU's memory is the host's, so that mapping saves nothing");
  AddDraftFlags(*command, flags->draft);
  command->add_flag("--json", flags->json, "One JSON object instead of text");
  command->footer(
      "Reads headers alone and needs no GPU. What does not fit is refused with the largest that\n"
      "does (exit code 1). The runtime's share is an assumption, and says so.\n\n"
      "Examples:\n"
      "  hallmark plan golden/models/scribe-11m-exl3 --vram 1GiB --kept 0\n"
      "  hallmark plan DIR --vram 24GiB --kv fp8 --embedding mapped\n"
      "  hallmark plan DIR --vram 24GiB --kv fp8 --drafter DRAFTER --drafter-weights 4bit \\\n"
      "    --streams 4 --context 32768 --json");
  command->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = Run(*flags);
      return code.has_value() ? *code : ReportError(code.error(), flags->json);
    };
  });
}

}  // namespace hallmark
