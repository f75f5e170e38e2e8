// SPDX-License-Identifier: Apache-2.0
// hallmark logits: fp32 logits of every position of given ids, as a safetensors file.
#include <CLI/CLI.hpp>
#include <memory>

#include "tools/hallmark/command.h"
#include "tools/hallmark/report.h"
#include "tools/hallmark/safetensors_out.h"

namespace hallmark {
namespace {

struct LogitsFlags {
  std::string directory;
  std::string ids;
  std::string out;
  EngineFlags engine;
};

Status WriteLogits(const LogitsFlags& flags) {
  TRY(CheckDirectory(flags.directory));
  TRY(CheckOutputFile(flags.out));
  const std::vector<int32_t> ids = TRY(ParseIds(flags.ids));
  SessionOptions options = TRY(ParseEngineFlags(flags.engine));
  options.streams = 1;
  options.kept_bytes = 0;
  Progress progress;
  progress.Show("opening " + flags.directory);
  const std::unique_ptr<Session> session = TRY(Session::Open(flags.directory, options));
  TRY(CheckOutputApart(flags.out, *session));
  TRY(CheckIds(ids, *session));
  progress.Show("running " + std::to_string(ids.size()) + " ids");
  const std::vector<float> logits = TRY(session->Logits(ids));
  const TensorOut tensor{.name = "logits",
                         .type = "F32",
                         .shape = {static_cast<int64_t>(ids.size()), session->vocab_size()},
                         .bytes = std::as_bytes(std::span(logits))};
  return WriteSafetensors(flags.out, {&tensor, 1});
}

}  // namespace

void AddLogitsCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<LogitsFlags>();
  CLI::App* command = program.add_subcommand(
      "logits", "Write the fp32 logits of every position of given token ids to a file");
  command->add_option("DIR", flags->directory, "The checkpoint's folder")
      ->required()
      ->type_name("");
  command->add_option("--ids", flags->ids, "Token ids, separated by commas")
      ->required()
      ->type_name("N,N,...");
  command
      ->add_option("--out", flags->out,
                   "The file to write: safetensors, tensor \"logits\" F32 [ids, vocabulary]")
      ->required()
      ->type_name("FILE");
  AddEngineFlags(*command, flags->engine);
  command->footer(
      "The file appears whole or not at all. Row i predicts the token after id i.\n\n"
      "Examples:\n"
      "  hallmark logits golden/models/scribe-11m-exl3 --ids 57,318,262 --out logits.safetensors\n"
      "  hallmark logits DIR --ids 1,2,3 --kv fp8 --threads 4 --out out.safetensors");
  command->callback([flags, &run] {
    run = [flags] {
      const Status status = WriteLogits(*flags);
      return status.has_value() ? kExitOk : ReportError(status.error(), false);
    };
  });
}

}  // namespace hallmark
