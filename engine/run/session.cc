// SPDX-License-Identifier: Apache-2.0
#include "engine/run/session.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/backend/cpu/cpu_backend.h"
#ifdef HALLMARK_HAS_CUDA
#include "engine/backend/cuda/cuda_backend.h"
#endif
#include "engine/base/checked.h"
#include "engine/base/mapped_file.h"
#include "engine/draft/drafter.h"
#include "engine/draft/drafter_plan.h"
#include "engine/format/checkpoint.h"
#include "engine/format/drafter_inventory.h"
#include "engine/format/inventory.h"
#include "engine/model/forward.h"
#include "engine/model/geometry.h"
#include "engine/model/memory_fit.h"
#include "engine/model/model.h"
#include "engine/model/sequence.h"
#include "engine/run/model_target.h"
#include "engine/run/scheduler.h"
#include "engine/text/tokenizer.h"

namespace hallmark {
namespace {

constexpr int64_t kMostContext = int64_t{1} << 40;  // far above any model, far below overflow

Status CheckOptions(const SessionOptions& options) {
  if (options.context < 0 || options.context > kMostContext) {
    return Fail(Code::kOutOfRange,
                "expected 0 (as memory allows) to " + std::to_string(kMostContext) + " positions",
                {.flag = "--context"});
  }
  if (options.streams < 0 || options.streams > kMaxStreams) {
    return Fail(Code::kOutOfRange,
                "found " + std::to_string(options.streams) + " streams, expected 1 to " +
                    std::to_string(kMaxStreams) + ", or 0 (as memory allows)",
                {.flag = "--streams"});
  }
  return {};
}

Result<std::unique_ptr<Backend>> MakeGpuBackend(const SessionOptions& options) {
  if (!options.tier.empty()) {
    return Fail(Code::kOutOfRange, "tiers are instructions of the CPU, expected none on cuda",
                {.flag = "--tier"});
  }
#ifdef HALLMARK_HAS_CUDA
  CudaBackendOptions cuda{.mapped_tables = options.mapped_embedding};
  // The context's and the kernels' share is not the arena's. At least a byte, for 0 is no bound.
  if (options.device_bytes > 0) {
    cuda.device_bytes = std::max(options.device_bytes, kRuntimeBytes + 1) - kRuntimeBytes;
  }
  return MakeCudaBackend(cuda);
#else
  return Fail(Code::kUnsupported,
              "this build has no CUDA backend: it was configured without nvcc 13 (a CUDA toolkit "
              "and -DHALLMARK_CUDA=ON bring it); --device cpu runs everywhere",
              {.flag = "--device"});
#endif
}

Result<std::unique_ptr<Backend>> MakeBackend(const SessionOptions& options) {
  if (options.device == "cuda") return MakeGpuBackend(options);
  if (options.device != "cpu") {
    return Fail(Code::kOutOfRange, "device is \"" + options.device + "\", expected cpu or cuda",
                {.flag = "--device"});
  }
  if (options.mapped_embedding) {
    return Fail(Code::kOutOfRange, "the CPU backend reads the embedding where it is, expected cuda",
                {.flag = "--embedding"});
  }
  if (options.device_bytes > 0) {
    return Fail(Code::kOutOfRange,
                "the CPU backend has no device memory to bound, expected --device cuda",
                {.flag = "--vram"});
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

// Members in the order they depend on each other: the last is freed first.
struct Session::Impl {
  std::string directory;
  SessionOptions options;
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<CheckpointInventory> inventory;
  std::optional<Tokenizer> tokenizer;
  std::vector<int32_t> stop_ids;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<DrafterCheckpoint> drafter_checkpoint;
  std::optional<DrafterInventory> drafter_tensors;
  std::unique_ptr<Drafter> drafter;
  std::unique_ptr<ModelTarget> target;
  std::unique_ptr<Scheduler> scheduler;

  // Where the head's weights stand: what a logit that is not finite speaks against.
  Locator HeadPlace() const {
    if (!inventory->head) return inventory->embedding.where();
    const LinearSource& head = *inventory->head;
    if (const auto* plain = std::get_if<PlainLinear>(&head.weights)) return plain->weight.where();
    return std::get<Exl3Group>(head.weights).trellis.where();
  }

  // Settles streams and positions by what the device has room for, before any weight is loaded.
  // Pages are allocated when they are first used: what cannot come to be is refused now.
  Result<StreamsAsked> Fit() const {
    StreamsAsked asked{.streams = options.streams, .context = options.context, .together = true};
    const std::optional<uint64_t> free = TRY(backend->FreeBytes());
    if (!free) {
      if (asked.streams == 0) asked.streams = kMaxStreams;
      return asked;
    }
    std::optional<DrafterMemory> drafts;
    if (drafter_tensors) {
      drafts = TRY(PlanDrafter(*drafter_tensors, drafter_checkpoint->config(),
                               options.drafter_options, inventory->head));
    }
    const MemoryPlan plan = MakeMemoryPlan(
        *inventory, checkpoint->config(), drafts ? &*drafts : nullptr,
        {.kv = options.kv,
         .tables = options.mapped_embedding ? TablePlacement::kMapped : TablePlacement::kDevice,
         .kept_bytes = options.kept_bytes});
    const bool bounded = options.device_bytes > 0 && options.device_bytes < *free;
    auto fit = FitTogether(plan, bounded ? options.device_bytes : *free, asked.streams,
                           asked.context, kMaxStreams);
    if (fit.has_value()) return fit;
    Error error = std::move(fit).error();
    error.where = {.file = directory,
                   .flag = options.context > 0        ? "--context"
                           : options.device_bytes > 0 ? "--vram"
                                                      : ""};
    if (!bounded) error.message += "; that much is free";
    return Fail(std::move(error));
  }

  // Headers and config; its weights are not looked at.
  Status OpenDrafter() {
    drafter_checkpoint =
        std::make_unique<DrafterCheckpoint>(TRY(DrafterCheckpoint::Open(options.drafter)));
    TRY(CheckDrafterFits(drafter_checkpoint->config(), checkpoint->config()));
    drafter_tensors = TRY(TakeDrafterInventory(*drafter_checkpoint));
    return {};
  }

  Status LoadDrafter() {
    TRY(CheckFiniteDrafter(*drafter_tensors));
    drafter = TRY(Drafter::Load(*drafter_tensors, drafter_checkpoint->config(), *model,
                                options.drafter_options));
    return drafter_checkpoint->Intact();
  }
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Open(const std::string& directory,
                                               const SessionOptions& options) {
  return Open(directory, options, nullptr);
}

Result<std::unique_ptr<Session>> Session::Open(const std::string& directory,
                                               const SessionOptions& options,
                                               std::unique_ptr<Backend> backend) {
  TRY(CheckOptions(options));
  auto impl = std::make_unique<Impl>();
  impl->directory = directory;
  impl->options = options;
  impl->checkpoint = std::make_unique<Checkpoint>(TRY(Checkpoint::Open(directory)));
  impl->inventory = std::make_unique<CheckpointInventory>(TRY(TakeInventory(*impl->checkpoint)));
  for (const int64_t id : impl->checkpoint->stop_ids().values()) {
    impl->stop_ids.push_back(static_cast<int32_t>(id));
  }
  const std::string tokenizer = directory + "/tokenizer.json";
  if (HasEntry(tokenizer)) impl->tokenizer = TRY(Tokenizer::Open(tokenizer));
  TRY(CheckFiniteScales(*impl->inventory));
  impl->backend = backend != nullptr ? std::move(backend) : TRY(MakeBackend(options));
  const ModelConfig& config = impl->checkpoint->config();
  TRY(impl->backend->CheckShapes(AttentionGeometryOf(config), DeltaNetGeometryOf(config)));
  if (!options.drafter.empty()) TRY(impl->OpenDrafter());
  const StreamsAsked fit = TRY(impl->Fit());
  impl->options.streams = static_cast<int>(fit.streams);
  impl->model = TRY(Model::Load(*impl->inventory, config, *impl->backend));
  if (impl->drafter_tensors) TRY(impl->LoadDrafter());
  const int64_t vocab = impl->model->config.vocab;
  const TargetInfo info{
      .drawable_ids =
          impl->tokenizer ? std::min<int64_t>(vocab, impl->tokenizer->vocab_size()) : vocab,
      .positions_where = {.file = directory + "/config.json"},
      .head_where = impl->HeadPlace()};
  const KvPoolOptions pages{.type = options.kv,
                            .max_pages = RoundUp(fit.context, kKvPageTokens) / kKvPageTokens,
                            .poison = options.poison_pages};
  impl->target = TRY(ModelTarget::Create(*impl->model, impl->drafter.get(), pages, info));
  TRY(impl->backend->Finish());     // uploads that failed fail here
  TRY(impl->checkpoint->Intact());  // and weights that were lost while they were read
  impl->scheduler = TRY(
      Scheduler::Create(*impl->target, impl->stop_ids,
                        {.max_streams = impl->options.streams, .kept_bytes = options.kept_bytes}));
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Result<Generation> Session::Generate(const GenerateRequest& request) {
  if (impl_->scheduler->in_round()) {
    return Fail(Code::kUnsupported, "a callback asked for a generation inside its own round");
  }
  const StreamId id = TRY(Submit(request));
  while (!IsDone(id)) {
    TRY(Round());
  }
  return Take(id);
}

Result<StreamId> Session::Submit(GenerateRequest request) {
  return impl_->scheduler->Submit(std::move(request));
}
Result<bool> Session::Round() { return impl_->scheduler->Round(); }
bool Session::Cancel(StreamId id) { return impl_->scheduler->Cancel(id); }
bool Session::IsDone(StreamId id) const { return impl_->scheduler->IsDone(id); }
Result<Generation> Session::Take(StreamId id) { return impl_->scheduler->Take(id); }
Target& Session::target() { return *impl_->target; }

Result<std::vector<float>> Session::Logits(std::span<const int32_t> ids, int64_t chunk) {
  const int64_t positions = impl_->model->config.max_positions;
  if (static_cast<int64_t>(ids.size()) > positions) {
    return Fail(Code::kOutOfRange,
                std::to_string(ids.size()) + " tokens, the model's max_position_embeddings is " +
                    std::to_string(positions),
                impl_->target->info().positions_where);
  }
  if (chunk < 0) return Fail(Code::kOutOfRange, "expected a chunk of 0 (all) or more rows");
  // Scratch of its own: streams may be active.
  ForwardPass pass = TRY(ForwardPass::Create(*impl_->model));
  Sequence sequence =
      TRY(Sequence::Create(*impl_->backend, impl_->model->config, impl_->options.kv));
  std::vector<float> logits;
  const size_t step = chunk == 0 ? std::max<size_t>(ids.size(), 1) : static_cast<size_t>(chunk);
  size_t done = 0;
  do {
    const auto piece = ids.subspan(done, std::min(step, ids.size() - done));
    ForwardOutput output = TRY(pass.Run(sequence, piece, {.logits = LogitRows::kAll}));
    logits.insert(logits.end(), output.logits.begin(), output.logits.end());
    done += piece.size();
  } while (done < ids.size());
  const auto bad =
      std::find_if(logits.begin(), logits.end(), [](float x) { return !std::isfinite(x); });
  if (bad == logits.end()) return logits;
  const int64_t index = bad - logits.begin();
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
const Drafter* Session::drafter() const { return impl_->drafter.get(); }
const DrafterCheckpoint* Session::drafter_checkpoint() const {
  return impl_->drafter_checkpoint.get();
}
const std::vector<int32_t>& Session::stop_ids() const { return impl_->stop_ids; }
const SessionOptions& Session::options() const { return impl_->options; }
int64_t Session::vocab_size() const { return impl_->model->config.vocab; }
int64_t Session::drawable_ids() const { return impl_->target->info().drawable_ids; }
std::string Session::backend_name() const { return impl_->backend->name(); }
std::string Session::tier() const { return impl_->backend->tier(); }
std::optional<BackendDevice> Session::device() const { return impl_->backend->device(); }

}  // namespace hallmark
