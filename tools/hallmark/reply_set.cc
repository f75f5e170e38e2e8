// SPDX-License-Identifier: Apache-2.0
#include "tools/hallmark/reply_set.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/base/json.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

using Clock = std::chrono::steady_clock;

// The first id comes from the prompt's pass; rounds and decoding time brought the others.
double DecodedIds(const Generation& generation) {
  return generation.ids.empty() ? 0.0 : static_cast<double>(generation.ids.size() - 1);
}

double Rate(double count, double per) { return per > 0 ? count / per : 0.0; }

}  // namespace

Status ReplySet::Submit(const GenerateRequest& request, std::vector<std::vector<int32_t>> prompts) {
  if (!options_.json) printer_.emplace(prompts.size(), options_.several);
  replies_.assign(prompts.size(), Reply(session_.tokenizer()));
  for (size_t i = 0; i < prompts.size(); ++i) {
    GenerateRequest one = request;
    replies_[i].prompt_tokens = prompts[i].size();
    one.prompt = std::move(prompts[i]);
    one.on_token = [this, i](int32_t id) { return Push(i, id); };
    replies_[i].id = TRY(session_.Submit(std::move(one)));
    waiting_.push_back(i);
  }
  return {};
}

Status ReplySet::RunAll() {
  const auto start = Clock::now();
  while (!waiting_.empty() && !reader_gone()) {
    TRY(session_.Round());
    TakeFinished();
  }
  seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  return {};
}

bool ReplySet::Push(size_t index, int32_t id) {
  auto piece = replies_[index].text.Push(id);
  if (!piece.has_value()) {
    replies_[index].error = std::move(piece).error();
    return false;
  }
  return !printer_ || printer_->Print(index, *piece);
}

void ReplySet::TakeFinished() {
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
    const bool silent = !options_.several && reply.error && reply.text.all().empty();
    if (printer_ && !silent) {
      printer_->Print(*next, rest);
      printer_->Finish(*next);
    }
    next = waiting_.erase(next);
  }
}

int ReplySet::ReportFaults() const {
  int worst = kExitOk;
  for (size_t i = 0; i < replies_.size(); ++i) {
    const Reply& reply = replies_[i];
    const std::string name = options_.several ? "reply " + std::to_string(i + 1) + ": " : "";
    if (const std::optional<Error>& fault = reply.generation.draft_error) {
      ReportWarning(name + "went on without its drafter: " + fault->message, fault->where);
    }
    if (!reply.error) continue;
    Error named = *reply.error;
    named.message = name + named.message;
    worst = std::max(worst, ReportError(named, options_.json && !options_.several));
  }
  return worst;
}

Json ReplySet::ToJson(const Reply& reply) const {
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
       {{"open_seconds", options_.open_seconds},
        {"prompt_seconds", generation.prompt_seconds},
        {"decode_seconds", generation.decode_seconds},
        {"decode_tokens_per_second", Rate(DecodedIds(generation), generation.decode_seconds)}}}};
  if (generation.draft_error) json["draft_error"] = Utf8(generation.draft_error->ToString());
  return json;
}

int ReplySet::PrintAsJson() const {
  if (!options_.several) {
    return replies_[0].error ? kExitOk : PrintJson(ToJson(replies_[0]));
  }
  Json list = Json::array();
  int64_t peak = 0;
  for (const Reply& reply : replies_) {
    list.push_back(ToJson(reply));
    peak = std::max(peak, reply.generation.peak_streams);
  }
  return PrintJson({{"replies", std::move(list)},
                    {"peak_streams", peak},
                    {"times",
                     {{"open_seconds", options_.open_seconds},
                      {"run_seconds", seconds_},
                      {"tokens_per_second", Rate(Tokens(), seconds_)}}}});
}

double ReplySet::Tokens() const {
  double tokens = 0;
  for (const Reply& reply : replies_) tokens += static_cast<double>(reply.generation.ids.size());
  return tokens;
}

void ReplySet::PrintSpeed() const {
  double decoded = 0, rounds = 0, seconds = 0;
  for (const Reply& reply : replies_) {
    decoded += DecodedIds(reply.generation);
    rounds += static_cast<double>(reply.generation.rounds);
    seconds += reply.generation.decode_seconds;
  }
  if (seconds <= 0) return;
  // Replies that ran at the same time share it, so theirs is the time of the whole run.
  std::fprintf(stderr, "%.0f tokens, %.1f a second, %.2f a round", Tokens(),
               options_.several ? Rate(Tokens(), seconds_) : Rate(decoded, seconds),
               Rate(decoded, rounds));
  if (!options_.several) {
    const std::string_view stop = StopReasonName(replies_[0].generation.stop);
    std::fprintf(stderr, ", stop: %.*s", static_cast<int>(stop.size()), stop.data());
  }
  std::fputs("\n", stderr);
}

}  // namespace hallmark
