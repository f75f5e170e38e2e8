// SPDX-License-Identifier: Apache-2.0
// hallmark run: generates from a prompt. Text is written as it comes, to a terminal or a pipe.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/json.h"
#include "engine/model/model.h"
#include "engine/text/chat.h"
#include "engine/text/streaming_decoder.h"
#include "tools/hallmark/command.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

struct RunFlags {
  std::string directory;
  std::string prompt, ids;
  bool has_prompt = false, has_ids = false;
  bool chat = false, ignore_stop = false, json = false;
  std::string max_tokens = "256";
  std::string temperature = "0", top_k = "0", top_p = "1", min_p = "0", seed = "0";
  EngineFlags engine;
};

Result<GenerateRequest> ParseRequest(const RunFlags& flags) {
  if (flags.has_prompt == flags.has_ids) {
    return Fail(Code::kOutOfRange,
                flags.has_ids ? "found both --prompt and --ids, expected one of them"
                              : "found neither --prompt nor --ids, expected one of them",
                {.flag = "--prompt"});
  }
  if (flags.chat && flags.has_ids) {
    return Fail(Code::kOutOfRange, "a conversation needs --prompt, ids are run as they are",
                {.flag = "--chat"});
  }
  GenerateRequest request;
  request.ignore_stop = flags.ignore_stop;
  request.max_tokens =
      TRY(ParseInteger(flags.max_tokens, "--max-tokens", 0, std::numeric_limits<int64_t>::max()));
  request.sampling.temperature = TRY(ParseFraction(flags.temperature, "--temperature"));
  if (request.sampling.temperature < 0) {
    return Fail(Code::kOutOfRange, "found \"" + flags.temperature + "\", expected 0 or more",
                {.flag = "--temperature"});
  }
  request.sampling.top_k =
      TRY(ParseInteger(flags.top_k, "--top-k", 0, std::numeric_limits<int64_t>::max()));
  request.sampling.top_p = TRY(ParseFraction(flags.top_p, "--top-p"));
  request.sampling.min_p = TRY(ParseFraction(flags.min_p, "--min-p"));
  request.sampling.seed = TRY(ParseSeed(flags.seed, "--seed"));
  TRY(CheckSamplingParams(request.sampling));
  if (flags.has_ids) request.prompt = TRY(ParseIds(flags.ids));
  return request;
}

Result<std::vector<int32_t>> EncodePrompt(const RunFlags& flags, const Session& session) {
  const Tokenizer* tokenizer = session.tokenizer();
  if (tokenizer == nullptr) {
    return Fail(Code::kNotFound,
                "the checkpoint has no tokenizer.json, so text cannot be read; give --ids",
                {.file = flags.directory + "/tokenizer.json", .flag = "--prompt"});
  }
  const auto encode = [&]() -> Result<std::vector<int32_t>> {
    if (!flags.chat) return tokenizer->Encode(flags.prompt);
    const std::vector<ChatMessage> turn = {{.role = "user", .content = flags.prompt}};
    return tokenizer->Encode(TRY(RenderChat(turn)));
  };
  auto ids = encode();
  if (!ids.has_value()) {
    Error error = std::move(ids).error();
    error.where.flag = "--prompt";
    return Fail(std::move(error));
  }
  if (ids->empty()) {
    return Fail(Code::kOutOfRange, "the prompt gives no token, expected some text",
                {.flag = "--prompt"});
  }
  const int64_t vocab = session.vocab_size();
  for (const int32_t id : *ids) {
    if (id < vocab) continue;
    return Fail(Code::kMismatch,
                "the tokenizer gives id " + std::to_string(id) + ", the model's vocabulary has " +
                    std::to_string(vocab),
                {.file = flags.directory + "/tokenizer.json"});
  }
  const int64_t positions = session.model().config.max_positions;
  if (static_cast<int64_t>(ids->size()) > positions) {
    return Fail(Code::kOutOfRange,
                "the prompt gives " + std::to_string(ids->size()) +
                    " tokens, expected at most the model's " + std::to_string(positions) +
                    " positions",
                {.flag = "--prompt"});
  }
  return ids;
}

// Writes a reply piece by piece: text where there is a tokenizer, else ids separated by spaces.
class ReplyWriter {
 public:
  ReplyWriter(const Tokenizer* tokenizer, bool print) : print_(print) {
    if (tokenizer != nullptr) decoder_.emplace(tokenizer);
  }

  // False when the reader is gone or a token cannot be decoded: the run then ends.
  bool Push(int32_t id) {
    if (!decoder_) return Write((text_.empty() ? "" : " ") + std::to_string(id));
    auto piece = decoder_->Push(id);
    if (!piece.has_value()) {
      error_ = std::move(piece).error();
      return false;
    }
    return Write(*piece);
  }

  bool Finish() {
    if (broken_) return false;
    if (decoder_ && !Write(decoder_->Flush())) return false;
    return !print_ || WriteOut("\n");
  }

  const std::string& text() const { return text_; }
  bool has_text() const { return decoder_.has_value(); }
  const std::optional<Error>& error() const { return error_; }

 private:
  bool Write(const std::string& piece) {
    text_ += piece;
    return !print_ || WriteOut(piece);
  }
  bool WriteOut(const std::string& piece) {
    if (PrintText(piece) == kExitOk) return true;
    broken_ = true;
    return false;
  }

  bool print_;
  bool broken_ = false;
  std::optional<StreamingDecoder> decoder_;
  std::string text_;
  std::optional<Error> error_;
};

Json GenerationJson(const Generation& generation, const ReplyWriter& reply, size_t prompt_tokens,
                    double open_seconds) {
  const double speed = generation.decode_seconds > 0
                           ? static_cast<double>(generation.rounds) / generation.decode_seconds
                           : 0.0;
  return {{"ids", generation.ids},
          {"text", reply.has_text() ? Json(reply.text()) : Json()},
          {"stop", StopReasonName(generation.stop)},
          {"rounds", generation.rounds},
          {"drafted", 0},
          {"accepted", 0},
          {"copied", 0},
          {"resumed", 0},
          {"prompt_tokens", prompt_tokens},
          {"times",
           {{"open_seconds", open_seconds},
            {"prompt_seconds", generation.prompt_seconds},
            {"decode_seconds", generation.decode_seconds},
            {"decode_tokens_per_second", speed}}}};
}

Result<int> Run(const RunFlags& flags) {
  TRY(CheckDirectory(flags.directory));
  GenerateRequest request = TRY(ParseRequest(flags));
  const SessionOptions options = TRY(ParseEngineFlags(flags.engine));
  const auto start = std::chrono::steady_clock::now();
  std::optional<Progress> progress(std::in_place);
  progress->Show("opening " + flags.directory);
  const std::unique_ptr<Session> session = TRY(Session::Open(flags.directory, options));
  const double open_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (flags.has_prompt) request.prompt = TRY(EncodePrompt(flags, *session));
  if (flags.has_ids) TRY(CheckIds(request.prompt, *session));
  progress.reset();

  ReplyWriter reply(session->tokenizer(), !flags.json);
  request.on_token = [&](int32_t id) { return reply.Push(id); };
  const Generation generation = TRY(session->Generate(request));
  const bool finished = reply.Finish();
  if (reply.error()) return Fail(*reply.error());
  if (!finished) return kExitUndecided;
  if (flags.json) {
    return PrintJson(GenerationJson(generation, reply, request.prompt.size(), open_seconds));
  }
  if (::isatty(STDERR_FILENO) == 1 && generation.decode_seconds > 0) {
    std::fprintf(stderr, "%zu tokens, %.1f a second, stop: %s\n", generation.ids.size(),
                 static_cast<double>(generation.rounds) / generation.decode_seconds,
                 std::string(StopReasonName(generation.stop)).c_str());
  }
  return kExitOk;
}

}  // namespace

void AddRunCommand(CLI::App& program, CommandRun& run) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      program.add_subcommand("run", "Generate from a prompt; the text streams to stdout");
  command->add_option("DIR", flags->directory, "The checkpoint's folder")
      ->required()
      ->type_name("");
  CLI::Option* prompt = command->add_option("--prompt", flags->prompt, "The prompt as text");
  CLI::Option* ids = command->add_option(
      "--ids", flags->ids, "The prompt as token ids, separated by commas; needs no tokenizer");
  ids->type_name("N,N,...");
  command->add_flag("--chat", flags->chat,
                    "Put the prompt into a ChatML user turn and ask for the reply");
  command->add_option("--max-tokens", flags->max_tokens, "Tokens to generate at most [256]")
      ->type_name("N");
  command
      ->add_option("--temperature", flags->temperature,
                   "0: always the likeliest token; above: sampled [0]")
      ->type_name("T");
  command->add_option("--top-k", flags->top_k, "Sample among the k likeliest; 0: all [0]")
      ->type_name("N");
  command
      ->add_option("--top-p", flags->top_p,
                   "Sample among the likeliest that hold this share; 1: all [1]")
      ->type_name("P");
  command
      ->add_option("--min-p", flags->min_p,
                   "Drop tokens below this share of the likeliest's; 0: none [0]")
      ->type_name("P");
  command
      ->add_option("--seed", flags->seed,
                   "With the position it decides every draw: same seed, same text [0]")
      ->type_name("N");
  command->add_flag("--ignore-stop", flags->ignore_stop, "Go on past the model's end tokens");
  AddEngineFlags(*command, flags->engine);
  command->add_flag("--json", flags->json,
                    "One JSON object at the end instead of text: ids, text, stop, counts, times");
  command->footer(
      "The tokens are a function of checkpoint, prompt, sampling flags and --kv; threads and tier\n"
      "change the speed alone. Without a tokenizer.json the reply is printed as ids.\n\n"
      "Examples:\n"
      "  hallmark run golden/models/scribe-11m-exl3 --prompt \"In the beginning\" --max-tokens 64\n"
      "  hallmark run DIR --prompt \"Name three rivers.\" --chat --temperature 0.7 --top-p 0.9\n"
      "  hallmark run DIR --ids 1,2,3 --max-tokens 8 --json");
  command->callback([flags, prompt, ids, &run] {
    flags->has_prompt = prompt->count() > 0;
    flags->has_ids = ids->count() > 0;
    run = [flags] {
      const Result<int> code = Run(*flags);
      return code.has_value() ? *code : ReportError(code.error(), flags->json);
    };
  });
}

}  // namespace hallmark
