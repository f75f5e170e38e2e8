// SPDX-License-Identifier: Apache-2.0
// hallmark bench: the speed of this machine's CPU backend and of drafting on it, measured only
// where bits and ids are right.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "conformance/harness/paths.h"
#include "engine/base/json.h"
#include "tools/bench/cpu_linear.h"
#include "tools/bench/lanes.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/prompts.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

constexpr int64_t kTokens = 128;

struct BenchFlags {
  std::string directory;
  std::optional<std::string> prompts;
  EngineFlags engine;
  DraftFlags draft;
};

struct Speed {
  std::vector<int32_t> ids;
  double tokens_per_second = 0;
};

// Serial greedy decoding of a fixed prompt.
Result<Speed> MeasureDecode(const std::string& directory, int threads) {
  const std::unique_ptr<Session> session = TRY(Session::Open(directory, {.threads = threads}));
  GenerateRequest request{.prompt = {1, 2, 3, 5, 8, 13, 21, 34}, .ignore_stop = true};
  request.max_tokens = 8;  // warms caches up; not counted
  (void)TRY(session->Generate(request));
  request.max_tokens = kTokens;
  const Generation generation = TRY(session->Generate(request));
  return Speed{generation.ids, static_cast<double>(generation.rounds) / generation.decode_seconds};
}

Result<int> BenchCpu(const BenchFlags& flags) {
  const std::string directory =
      flags.directory.empty() ? GoldenPath("models/scribe-11m-exl3") : flags.directory;
  TRY(CheckDirectory(directory));
  const int printed = PrintText(CpuLinearBenchText(TRY(RunCpuLinearBench({}))) + "\n");
  if (printed != kExitOk) return printed;
  std::string text = fmt::format("serial decoding of {}, {} tokens\n", directory, kTokens);
  std::optional<Speed> first;
  for (const int threads : {1, 2}) {
    const Speed speed = TRY(MeasureDecode(directory, threads));
    if (first && speed.ids != first->ids) {
      return Fail(Code::kMismatch, "one and two threads drew different tokens, so no speed counts");
    }
    if (!first) first = speed;
    text += fmt::format("  {} thread{}  {:>8.1f} tokens/s\n", threads, threads == 1 ? " " : "s",
                        speed.tokens_per_second);
  }
  return PrintText(text);
}

Result<int> BenchLanes(const BenchFlags& flags) {
  SessionOptions options = TRY(ParseEngineFlags(flags.engine));
  TRY(ParseDraftFlags(flags.draft, options));
  std::string directory = flags.directory;
  PromptFlags prompts{.file = flags.prompts};
  if (directory.empty()) {
    directory = GoldenPath("models/scribe-11m-exl3");
    if (options.drafter.empty()) options.drafter = GoldenPath("models/scribe-11m-dflash2");
    if (!prompts.file) prompts.file = directory + "/prompts.json";
  }
  TRY(CheckDirectory(directory));
  if (options.drafter.empty()) {
    return Fail(Code::kOutOfRange, "found no drafter, expected the one to measure",
                {.flag = "--drafter"});
  }
  if (!prompts.file) {
    return Fail(Code::kOutOfRange, "found no prompts, expected a file of them",
                {.flag = "--prompts"});
  }
  const std::vector<Prompt> read = TRY(ReadPrompts(prompts));
  Progress progress;
  progress.Show("opening " + directory);
  const std::unique_ptr<Session> session = TRY(Session::Open(directory, options));
  LaneBenchOptions bench;
  for (const Prompt& prompt : read) {
    bench.prompts.push_back(TRY(PromptIds(prompt, false, directory, *session)));
  }
  progress.Show("running each prompt with and without drafts");
  const Json result = TRY(RunLaneBench(*session, bench));
  progress.Clear();
  return PrintText(LaneBenchText(result));
}

}  // namespace

void AddBenchCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command =
      program.add_subcommand("bench", "Measure speed; what is measured is checked for bits first");
  command->require_subcommand(1);
  CLI::App* cpu = command->add_subcommand("cpu", "The CPU backend: linears by tier, then decoding");
  cpu->add_option("DIR", flags->directory,
                  "The checkpoint to decode with [the golden scribe model]")
      ->type_name("");
  CLI::App* lanes = command->add_subcommand(
      "lanes", "Decoding with drafts and copies over decoding without, the same ids in both");
  lanes->add_option("DIR", flags->directory, "The checkpoint [the golden scribe model]")
      ->type_name("");
  AddTextFlag(*lanes, "--prompts", flags->prompts,
              "The prompts: one a line, or a .json array [those of the golden model]")
      ->type_name("FILE");
  AddDraftFlags(*lanes, flags->draft);
  AddEngineFlags(*lanes, flags->engine);
  const char* footer =
      "Close other programs first: speeds are an observation of this machine at this moment.\n\n"
      "Examples:\n"
      "  hallmark bench cpu\n"
      "  hallmark bench cpu DIR\n"
      "  hallmark bench lanes\n"
      "  hallmark bench lanes DIR --drafter DRAFTER --prompts prompts.txt";
  command->footer(footer);
  cpu->footer(footer);
  lanes->footer(footer);
  lanes->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = BenchLanes(*flags);
      return code.has_value() ? *code : ReportError(code.error(), false);
    };
  });
  cpu->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = BenchCpu(*flags);
      return code.has_value() ? *code : ReportError(code.error(), false);
    };
  });
}

}  // namespace hallmark
