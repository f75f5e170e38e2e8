// SPDX-License-Identifier: Apache-2.0
// hallmark run: generates from prompts. Text is written as it comes, to a terminal or a pipe.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

#include "engine/draft/copy_index.h"
#include "engine/run/scheduler.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/prompts.h"
#include "tools/hallmark/reply_set.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

constexpr int64_t kMostStreams = 8;
constexpr int64_t kMostContext = int64_t{1} << 40;  // far above any model, far below overflow
constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

struct RunFlags {
  std::string directory;
  PromptFlags prompts;
  bool ignore_stop = false, no_draft = false, json = false;
  std::string max_tokens = "256";
  std::string temperature = "0", top_k = "0", top_p = "1", min_p = "0", seed = "0";
  std::optional<std::string> copy_match, window;
  std::optional<std::string> streams;
  std::string context = "0", kept = "1GiB";
  DraftFlags draft;
  EngineFlags engine;
};

Result<DraftPolicy> ParsePolicy(const RunFlags& flags) {
  DraftPolicy policy;
  if (flags.no_draft && !flags.draft.drafter) {
    return Fail(Code::kOutOfRange, "there is no drafter to leave unused, expected --drafter",
                {.flag = "--no-draft"});
  }
  policy.drafter = !flags.no_draft;
  if (flags.copy_match) {
    policy.copy_match =
        TRY(ParseInteger(*flags.copy_match, "--copy-match", 0, CopyIndex::kLongestMatch));
  }
  if (flags.window) {
    policy.window = TRY(ParseInteger(*flags.window, "--window", 0, kRoundRows - 1));
    const bool drafts = flags.draft.drafter && !flags.no_draft;
    if (!drafts && policy.copy_match == 0) {
      return Fail(Code::kOutOfRange,
                  "there is nothing to verify: no drafter drafts and copies are off",
                  {.flag = "--window"});
    }
  }
  return policy;
}

// What every prompt is asked with.
Result<GenerateRequest> ParseRequest(const RunFlags& flags) {
  GenerateRequest request;
  request.ignore_stop = flags.ignore_stop;
  request.max_tokens = TRY(ParseInteger(flags.max_tokens, "--max-tokens", 0, kAny));
  request.sampling.temperature = TRY(ParseFraction(flags.temperature, "--temperature"));
  if (request.sampling.temperature < 0) {
    return Fail(Code::kOutOfRange, "found \"" + flags.temperature + "\", expected 0 or more",
                {.flag = "--temperature"});
  }
  request.sampling.top_k = TRY(ParseInteger(flags.top_k, "--top-k", 0, kAny));
  request.sampling.top_p = TRY(ParseFraction(flags.top_p, "--top-p"));
  request.sampling.min_p = TRY(ParseFraction(flags.min_p, "--min-p"));
  request.sampling.seed = TRY(ParseSeed(flags.seed, "--seed"));
  TRY(CheckSamplingParams(request.sampling));
  request.draft = TRY(ParsePolicy(flags));
  return request;
}

Result<SessionOptions> ParseOptions(const RunFlags& flags) {
  SessionOptions options = TRY(ParseEngineFlags(flags.engine));
  TRY(ParseDraftFlags(flags.draft, options));
  if (flags.streams) {
    options.streams =
        static_cast<int>(TRY(ParseInteger(*flags.streams, "--streams", 1, kMostStreams)));
  } else if (!flags.prompts.file) {
    options.streams = 1;  // all that a device has room for is the one prompt's
  }
  options.kept_bytes = TRY(ParseBytes(flags.kept, "--kept"));
  options.context = TRY(ParseInteger(flags.context, "--context", 0, kMostContext));
  return options;
}

Result<int> Run(const RunFlags& flags) {
  TRY(CheckDirectory(flags.directory));
  const std::vector<Prompt> prompts = TRY(ReadPrompts(flags.prompts));
  const GenerateRequest request = TRY(ParseRequest(flags));
  const SessionOptions options = TRY(ParseOptions(flags));
  const auto start = std::chrono::steady_clock::now();
  std::optional<Progress> progress(std::in_place);
  progress->Show("opening " + flags.directory);
  const std::unique_ptr<Session> session = TRY(OpenSession(flags.directory, options));
  const double open_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::vector<std::vector<int32_t>> ids;
  for (const Prompt& prompt : prompts) {
    ids.push_back(TRY(PromptIds(prompt, flags.prompts.chat, flags.directory, *session)));
  }
  ReplySet replies(*session, {.json = flags.json,
                              .several = flags.prompts.file.has_value(),
                              .open_seconds = open_seconds});
  TRY(replies.Submit(request, std::move(ids)));
  progress.reset();
  TRY(replies.RunAll());
  if (replies.reader_gone()) return kExitUndecided;
  const int fault = replies.ReportFaults();
  const int printed = flags.json ? replies.PrintAsJson() : kExitOk;
  if (!flags.json && fault == kExitOk && ::isatty(STDERR_FILENO) == 1) replies.PrintSpeed();
  return std::max(fault, printed);
}

constexpr char kFooter[] =
    "The tokens are a function of checkpoint, prompt, sampling flags and --kv; everything else,\n"
    "drafters, copies, windows and streams included, changes the speed alone. Without a\n"
    "tokenizer.json replies are printed as ids.\n"
    "\n"
    "--prompts: a file named *.json is an array with a string or an array of ids for each prompt;\n"
    "any other is UTF-8 text, a prompt in every line. Replies come in the order of the prompts,\n"
    "each under a header line; with --json in one object, \"replies\", of one prompt too. One "
    "that\n"
    "fails leaves the others as they are; the exit code is then that of the worst.\n"
    "\n"
    "Examples:\n"
    "  hallmark run golden/models/scribe-11m-exl3 --prompt \"In the beginning\" --max-tokens 64\n"
    "  hallmark run golden/models/scribe-11m-exl3 --drafter golden/models/scribe-11m-dflash2 \\\n"
    "    --prompts golden/models/scribe-11m-exl3/prompts.json --streams 4 --max-tokens 64\n"
    "  hallmark run DIR --prompt \"Name three rivers.\" --chat --temperature 0.7 --top-p 0.9\n"
    "  hallmark run DIR --drafter D --drafter-weights 4bit --draft-vocab 0:98304 --prompt TEXT\n"
    "  hallmark run DIR --ids 1,2,3 --max-tokens 8 --copy-match 0 --json";

void AddSamplingFlags(CLI::App& command, RunFlags& flags) {
  command
      .add_option("--temperature", flags.temperature,
                  "0: always the likeliest token; above: sampled [0]")
      ->type_name("T");
  command.add_option("--top-k", flags.top_k, "Sample among the k likeliest; 0: all [0]")
      ->type_name("N");
  command
      .add_option("--top-p", flags.top_p,
                  "Sample among the likeliest that hold this share; 1: all [1]")
      ->type_name("P");
  command
      .add_option("--min-p", flags.min_p,
                  "Drop tokens below this share of the likeliest's; 0: none [0]")
      ->type_name("P");
  command
      .add_option("--seed", flags.seed,
                  "With the position it decides every draw: same seed, same text [0]")
      ->type_name("N");
}

void AddPolicyFlags(CLI::App& command, RunFlags& flags) {
  AddDraftFlags(command, flags.draft);
  command.add_flag("--no-draft", flags.no_draft, "Open the drafter and leave it unused");
  AddTextFlag(command, "--copy-match", flags.copy_match,
              "Ids that must repeat before what followed them is tried again; 0: never [5; 20 for "
              "the 27B]")
      ->type_name("N");
  AddTextFlag(command, "--window", flags.window,
              "Drafts and copied ids verified a round at most [as measured costs advise]")
      ->type_name("N");
  AddTextFlag(command, "--streams", flags.streams,
              "Prompts that run at once, 1 to 8 [8; on cuda as many as hold 32768 positions each]")
      ->type_name("N");
  command
      .add_option("--context", flags.context,
                  "Positions that all running prompts and replies may hold together, in pages of "
                  "256; 0: as memory allows [0]")
      ->type_name("N");
  command.add_option("--kept", flags.kept, "Bound of kept states; 0: none are kept [1GiB]")
      ->type_name("SIZE");
}

}  // namespace

void AddRunCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      program.add_subcommand("run", "Generate from prompts; the text streams to stdout");
  command->add_option("DIR", flags->directory, "The checkpoint's folder")
      ->required()
      ->type_name("");
  AddTextFlag(*command, "--prompt", flags->prompts.text, "The prompt as text");
  AddTextFlag(*command, "--ids", flags->prompts.ids,
              "The prompt as token ids, separated by commas; needs no tokenizer")
      ->type_name("N,N,...");
  AddTextFlag(*command, "--prompts", flags->prompts.file, "A file of prompts, see below")
      ->type_name("FILE");
  command->add_flag("--chat", flags->prompts.chat,
                    "Put each prompt into a ChatML user turn and ask for the reply");
  command->add_option("--max-tokens", flags->max_tokens, "Tokens to generate at most [256]")
      ->type_name("N");
  AddSamplingFlags(*command, *flags);
  command->add_flag("--ignore-stop", flags->ignore_stop, "Go on past the model's end tokens");
  AddPolicyFlags(*command, *flags);
  AddEngineFlags(*command, flags->engine);
  command->add_flag("--json", flags->json,
                    "One JSON object at the end instead of text: ids, text, stop, counts, times");
  command->footer(kFooter);
  command->callback([flags, &run] {
    run = [flags] {
      const Result<int> code = Run(*flags);
      return code.has_value() ? *code : ReportError(code.error(), flags->json);
    };
  });
}

}  // namespace hallmark
