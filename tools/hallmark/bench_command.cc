// SPDX-License-Identifier: Apache-2.0
// hallmark bench cpu: the speed of this machine's CPU backend, measured only after its bits were
// found right.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "conformance/harness/paths.h"
#include "engine/base/json.h"
#include "tools/bench/cpu_linear.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

constexpr int64_t kTokens = 128;

struct BenchFlags {
  std::string directory;
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
  const char* footer =
      "Close other programs first: speeds are an observation of this machine at this moment.\n\n"
      "Examples:\n"
      "  hallmark bench cpu\n"
      "  hallmark bench cpu DIR";
  command->footer(footer);
  cpu->footer(footer);
  cpu->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = BenchCpu(*flags);
      return code.has_value() ? *code : ReportError(code.error(), false);
    };
  });
}

}  // namespace hallmark
