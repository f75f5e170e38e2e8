// SPDX-License-Identifier: Apache-2.0
// hallmark run: generates from prompts. Text is written as it comes, to a terminal or a pipe.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/json.h"
#include "engine/draft/copy_index.h"
#include "engine/model/forward.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/prompts.h"
#include "tools/hallmark/replies.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

using Clock = std::chrono::steady_clock;

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
  std::string streams = "8", context = "0";
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
    policy.window = TRY(ParseInteger(*flags.window, "--window", 0, ForwardPass::kMaxRows - 1));
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
  options.streams =
      static_cast<int>(TRY(ParseInteger(flags.streams, "--streams", 1, kMostStreams)));
  options.context = TRY(ParseInteger(flags.context, "--context", 0, kMostContext));
  return options;
}

struct Reply {
  explicit Reply(const Tokenizer* tokenizer) : text(tokenizer) {}

  StreamId id = 0;
  size_t prompt_tokens = 0;
  ReplyText text;
  Generation generation;
  std::optional<Error> error;  // what ended this reply alone
};

// The first id comes from the prompt's pass; rounds and decoding time brought the others.
double DecodedIds(const Generation& generation) {
  return generation.ids.empty() ? 0.0 : static_cast<double>(generation.ids.size() - 1);
}

double Rate(double count, double per) { return per > 0 ? count / per : 0.0; }

Json ReplyJson(const Reply& reply, double open_seconds) {
  if (reply.error) return ErrorJson(*reply.error);
  const Generation& generation = reply.generation;
  Json json = {
      {"ids", generation.ids},
      {"text", reply.text.decoded() ? Json(reply.text.all()) : Json()},
      {"stop", StopReasonName(generation.stop)},
      {"rounds", generation.rounds},
      {"drafted", generation.drafted},
      {"accepted", generation.accepted},
      {"copied", generation.copied},
      {"resumed", generation.resumed},
      {"prompt_tokens", reply.prompt_tokens},
      {"times",
       {{"open_seconds", open_seconds},
        {"prompt_seconds", generation.prompt_seconds},
        {"decode_seconds", generation.decode_seconds},
        {"decode_tokens_per_second", Rate(DecodedIds(generation), generation.decode_seconds)}}}};
  if (generation.draft_error) json["draft_error"] = Utf8(generation.draft_error->ToString());
  return json;
}

// All replies of one run, in the order of their prompts.
class Replies {
 public:
  Replies(Session& session, const RunFlags& flags, double open_seconds)
      : session_(session), flags_(flags), open_seconds_(open_seconds) {}

  // Queues all prompts: one that could never run is refused before any runs.
  Status Submit(const GenerateRequest& request, std::span<const Prompt> prompts) {
    std::vector<std::vector<int32_t>> ids;
    for (const Prompt& prompt : prompts) {
      ids.push_back(TRY(PromptIds(prompt, flags_.prompts.chat, flags_.directory, session_)));
    }
    if (!flags_.json) printer_.emplace(prompts.size(), several());
    replies_.assign(prompts.size(), Reply(session_.tokenizer()));
    for (size_t i = 0; i < replies_.size(); ++i) {
      GenerateRequest one = request;
      replies_[i].prompt_tokens = ids[i].size();
      one.prompt = std::move(ids[i]);
      one.on_token = [this, i](int32_t id) { return Push(i, id); };
      replies_[i].id = TRY(session_.Submit(std::move(one)));
      waiting_.push_back(i);
    }
    return {};
  }

  // Until all are done or the reader is gone.
  Status RunAll() {
    const auto start = Clock::now();
    while (!waiting_.empty() && !reader_gone()) {
      TRY(session_.Round());
      TakeFinished();
    }
    seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
    return {};
  }

  bool reader_gone() const { return printer_ && printer_->broken(); }

  // The faults of replies on stderr, and the worst of their exit codes.
  int ReportFaults() const {
    int worst = kExitOk;
    for (size_t i = 0; i < replies_.size(); ++i) {
      const Reply& reply = replies_[i];
      const std::string name = several() ? "reply " + std::to_string(i + 1) + ": " : "";
      if (const std::optional<Error>& fault = reply.generation.draft_error) {
        ReportWarning(name + "went on without its drafter: " + fault->message, fault->where);
      }
      if (!reply.error) continue;
      Error named = *reply.error;
      named.message = name + named.message;
      worst = std::max(worst, ReportError(named, flags_.json && !several()));
    }
    return worst;
  }

  int PrintAsJson() const {
    if (!several()) {
      return replies_[0].error ? kExitOk : PrintJson(ReplyJson(replies_[0], open_seconds_));
    }
    Json list = Json::array();
    int64_t peak = 0;
    for (const Reply& reply : replies_) {
      list.push_back(ReplyJson(reply, open_seconds_));
      peak = std::max(peak, reply.generation.peak_streams);
    }
    return PrintJson({{"replies", std::move(list)},
                      {"peak_streams", peak},
                      {"times",
                       {{"open_seconds", open_seconds_},
                        {"run_seconds", seconds_},
                        {"tokens_per_second", Rate(Tokens(), seconds_)}}}});
  }

  // One line for who watches.
  void PrintSpeed() const {
    double decoded = 0, rounds = 0, seconds = 0;
    for (const Reply& reply : replies_) {
      decoded += DecodedIds(reply.generation);
      rounds += static_cast<double>(reply.generation.rounds);
      seconds += reply.generation.decode_seconds;
    }
    if (seconds <= 0) return;
    // Replies that ran at the same time share it, so theirs is the time of the whole run.
    std::fprintf(stderr, "%.0f tokens, %.1f a second, %.2f a round", Tokens(),
                 several() ? Rate(Tokens(), seconds_) : Rate(decoded, seconds),
                 Rate(decoded, rounds));
    if (!several()) {
      const std::string_view stop = StopReasonName(replies_[0].generation.stop);
      std::fprintf(stderr, ", stop: %.*s", static_cast<int>(stop.size()), stop.data());
    }
    std::fputs("\n", stderr);
  }

 private:
  // Whether they are told apart; a file of one prompt answers in the form of many.
  bool several() const { return flags_.prompts.file.has_value(); }

  double Tokens() const {
    double tokens = 0;
    for (const Reply& reply : replies_) tokens += static_cast<double>(reply.generation.ids.size());
    return tokens;
  }

  // False ends the reply: the reader is gone, or the id cannot be decoded.
  bool Push(size_t index, int32_t id) {
    auto piece = replies_[index].text.Push(id);
    if (!piece.has_value()) {
      replies_[index].error = std::move(piece).error();
      return false;
    }
    return !printer_ || printer_->Print(index, *piece);
  }

  void TakeFinished() {
    // Prompts start in their order: those behind as many running ones as there can be wait still.
    int running = 0;
    for (auto next = waiting_.begin();
         next != waiting_.end() && running <= session_.options().streams;) {
      Reply& reply = replies_[*next];
      if (!session_.IsDone(reply.id)) {
        ++running;
        ++next;
        continue;
      }
      auto taken = session_.Take(reply.id);
      if (taken.has_value()) {
        reply.generation = std::move(*taken);
      } else {
        reply.error = std::move(taken).error();
      }
      const std::string rest = reply.text.Finish();
      // A lone prompt that failed before its first id leaves stdout empty.
      const bool silent = !several() && reply.error && reply.text.all().empty();
      if (printer_ && !silent) {
        printer_->Print(*next, rest);
        printer_->Finish(*next);
      }
      next = waiting_.erase(next);
    }
  }

  Session& session_;
  const RunFlags& flags_;
  double open_seconds_;
  double seconds_ = 0;  // of all rounds
  std::vector<Reply> replies_;
  std::vector<size_t> waiting_;  // not taken yet, ascending
  std::optional<ReplyPrinter> printer_;
};

Result<int> Run(const RunFlags& flags) {
  TRY(CheckDirectory(flags.directory));
  const std::vector<Prompt> prompts = TRY(ReadPrompts(flags.prompts));
  const GenerateRequest request = TRY(ParseRequest(flags));
  const SessionOptions options = TRY(ParseOptions(flags));
  const auto start = Clock::now();
  std::optional<Progress> progress(std::in_place);
  progress->Show("opening " + flags.directory);
  const std::unique_ptr<Session> session = TRY(OpenSession(flags.directory, options));
  const double open_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  Replies replies(*session, flags, open_seconds);
  TRY(replies.Submit(request, prompts));
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
  command.add_option("--streams", flags.streams, "Prompts that run at once, 1 to 8 [8]")
      ->type_name("N");
  command
      .add_option("--context", flags.context,
                  "Positions that all running prompts and replies may hold together, in pages of "
                  "256; 0: as memory allows [0]")
      ->type_name("N");
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
