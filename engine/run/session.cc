// SPDX-License-Identifier: Apache-2.0
#include "engine/run/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/base/mapped_file.h"
#include "engine/format/checkpoint.h"
#include "engine/format/inventory.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"
#include "engine/model/sequence.h"
#include "engine/text/tokenizer.h"

namespace hallmark {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<std::unique_ptr<Backend>> MakeBackend(const SessionOptions& options) {
  if (options.device != "cpu") {
    return Fail(Code::kUnsupported, "this build has no " + options.device + " backend, only cpu",
                {.flag = "--device"});
  }
  CpuBackendOptions cpu{.threads = options.threads};
  if (!options.tier.empty()) {
    cpu.tier = ParseCpuTier(options.tier);
    if (!cpu.tier) {
      return Fail(Code::kOutOfRange,
                  "tier is \"" + options.tier + "\", expected scalar, avx2, avx512 or avx512fp16",
                  {.flag = "--tier"});
    }
  }
  return MakeCpuBackend(cpu);
}

}  // namespace

std::string_view StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kMaxTokens:
      return "max_tokens";
    case StopReason::kStopToken:
      return "stop_token";
    case StopReason::kCaller:
      return "caller";
    case StopReason::kContext:
      return "context";
  }
  return "max_tokens";
}

// Members in the order they depend on each other: the last is freed first.
struct Session::Impl {
  SessionOptions options;
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<CheckpointInventory> inventory;
  std::optional<Tokenizer> tokenizer;
  std::vector<int32_t> stop_ids;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::optional<ForwardPass> pass;

  // Where the head's weights stand: what a logit that is not finite speaks against.
  Locator HeadPlace() const {
    if (!inventory->head) return inventory->embedding.where();
    const LinearSource& head = *inventory->head;
    if (const auto* plain = std::get_if<PlainLinear>(&head.weights)) return plain->weight.where();
    return std::get<Exl3Group>(head.weights).trellis.where();
  }

  // Said here, where the file is known: no pass could hold these positions.
  Status CheckLength(size_t tokens) const {
    const int64_t positions = model->config.max_positions;
    if (static_cast<int64_t>(tokens) <= positions) return {};
    return Fail(Code::kOutOfRange,
                std::to_string(tokens) + " tokens, the model's max_position_embeddings is " +
                    std::to_string(positions),
                {.file = checkpoint->folder() + "/config.json"});
  }

  // Feeds `ids` to `sequence`, `chunk` at a time (0: all at once).
  Result<ForwardOutput> Feed(Sequence& sequence, std::span<const int32_t> ids, int64_t chunk,
                             LogitRows logits) {
    TRY(CheckLength(ids.size()));
    if (chunk < 0) return Fail(Code::kOutOfRange, "expected a chunk of 0 (all) or more rows");
    const size_t step = chunk == 0 ? std::max<size_t>(ids.size(), 1) : static_cast<size_t>(chunk);
    ForwardOutput all;
    size_t done = 0;
    do {
      const auto piece = ids.subspan(done, std::min(step, ids.size() - done));
      const bool last = done + piece.size() == ids.size();
      const LogitRows rows = last || logits == LogitRows::kAll ? logits : LogitRows::kNone;
      ForwardOutput output = TRY(pass->Run(sequence, piece, {.logits = rows}));
      all.logits.insert(all.logits.end(), output.logits.begin(), output.logits.end());
      done += piece.size();
    } while (done < ids.size());
    return all;
  }
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Open(const std::string& directory,
                                               const SessionOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->checkpoint = std::make_unique<Checkpoint>(TRY(Checkpoint::Open(directory)));
  impl->inventory = std::make_unique<CheckpointInventory>(TRY(TakeInventory(*impl->checkpoint)));
  for (const int64_t id : impl->checkpoint->stop_ids().values()) {
    impl->stop_ids.push_back(static_cast<int32_t>(id));
  }
  const std::string tokenizer = directory + "/tokenizer.json";
  if (HasEntry(tokenizer)) impl->tokenizer = TRY(Tokenizer::Open(tokenizer));
  TRY(CheckFiniteScales(*impl->inventory));
  impl->backend = TRY(MakeBackend(options));
  impl->model = TRY(Model::Load(*impl->inventory, impl->checkpoint->config(), *impl->backend));
  impl->pass = TRY(ForwardPass::Create(*impl->model));
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Result<Generation> Session::Generate(const GenerateRequest& request) {
  TRY(CheckSamplingParams(request.sampling));
  if (request.prompt.empty()) return Fail(Code::kOutOfRange, "the prompt has no tokens");
  if (request.max_tokens < 0) {
    return Fail(Code::kOutOfRange, "expected 0 or more tokens", {.flag = "--max-tokens"});
  }
  Sequence sequence =
      TRY(Sequence::Create(*impl_->backend, impl_->model->config, impl_->options.kv));
  Generation generation;
  auto start = Clock::now();
  ForwardOutput output =
      TRY(impl_->Feed(sequence, request.prompt, request.prompt_chunk, LogitRows::kLast));
  generation.prompt_seconds = SecondsSince(start);
  start = Clock::now();
  const size_t drawable = static_cast<size_t>(drawable_ids());
  while (static_cast<int64_t>(generation.ids.size()) < request.max_tokens) {
    const std::span<const float> logits = std::span(output.logits).first(drawable);
    auto drawn = SampleToken(logits, request.sampling, static_cast<uint64_t>(sequence.position()));
    if (!drawn.has_value()) {
      Error error = std::move(drawn).error();
      error.where = impl_->HeadPlace();
      return Fail(std::move(error));
    }
    const int32_t token = *drawn;
    generation.ids.push_back(token);
    if (request.on_token && !request.on_token(token)) {
      generation.stop = StopReason::kCaller;
      break;
    }
    const auto& stops = impl_->stop_ids;
    if (!request.ignore_stop && std::find(stops.begin(), stops.end(), token) != stops.end()) {
      generation.stop = StopReason::kStopToken;
      break;
    }
    if (static_cast<int64_t>(generation.ids.size()) == request.max_tokens) break;
    if (sequence.position() == impl_->model->config.max_positions) {
      generation.stop = StopReason::kContext;
      break;
    }
    output = TRY(impl_->pass->Run(sequence, {&token, 1}, {.logits = LogitRows::kLast}));
    ++generation.rounds;
  }
  generation.decode_seconds = SecondsSince(start);
  return generation;
}

Result<std::vector<float>> Session::Logits(std::span<const int32_t> ids, int64_t chunk) {
  Sequence sequence =
      TRY(Sequence::Create(*impl_->backend, impl_->model->config, impl_->options.kv));
  ForwardOutput output = TRY(impl_->Feed(sequence, ids, chunk, LogitRows::kAll));
  const auto bad = std::find_if(output.logits.begin(), output.logits.end(),
                                [](float logit) { return !std::isfinite(logit); });
  if (bad == output.logits.end()) return std::move(output.logits);
  const int64_t index = bad - output.logits.begin();
  return Fail(Code::kOutOfRange,
              "the logit of token " + std::to_string(index % vocab_size()) + " at position " +
                  std::to_string(index / vocab_size()) + " is not finite",
              impl_->HeadPlace());
}

const Tokenizer* Session::tokenizer() const {
  return impl_->tokenizer ? &*impl_->tokenizer : nullptr;
}
const Checkpoint& Session::checkpoint() const { return *impl_->checkpoint; }
const CheckpointInventory& Session::inventory() const { return *impl_->inventory; }
const Model& Session::model() const { return *impl_->model; }
const std::vector<int32_t>& Session::stop_ids() const { return impl_->stop_ids; }
const SessionOptions& Session::options() const { return impl_->options; }
int64_t Session::vocab_size() const { return impl_->model->config.vocab; }
int64_t Session::drawable_ids() const {
  const int64_t vocab = vocab_size();
  return impl_->tokenizer ? std::min<int64_t>(vocab, impl_->tokenizer->vocab_size()) : vocab;
}
std::string Session::backend_name() const { return impl_->backend->name(); }
std::string Session::tier() const { return impl_->backend->tier(); }

}  // namespace hallmark
