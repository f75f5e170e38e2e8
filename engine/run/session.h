// SPDX-License-Identifier: Apache-2.0
// Session: the one header outsiders include. Opens a checkpoint, with a drafter if there is one, on
// a backend and generates from it: one request at a time with Generate, or up to eight streams that
// share rounds with Submit, Round and Take. Not thread-safe.
//
// Determinism: ids and logits are a function of checkpoint, ids, sampling settings and backend
// arithmetic, never of threads, tier, drafts, kept states, neighbours, or how a prompt is cut.
#ifndef HALLMARK_ENGINE_RUN_SESSION_H_
#define HALLMARK_ENGINE_RUN_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/backend/geometry.h"
#include "engine/base/result.h"
#include "engine/draft/drafter_options.h"
#include "engine/run/generation.h"
#include "engine/run/stream_id.h"

namespace hallmark {

class Backend;
class Checkpoint;
class Drafter;
class DrafterCheckpoint;
class Target;
class Tokenizer;
struct BackendDevice;
struct CheckpointInventory;
struct Model;

struct SessionOptions {
  std::string device = "cpu";  // "cpu"; "cuda" where the build has it
  std::string tier;            // a CpuTierName; empty: the best the machine has
  int threads = 0;             // of the CPU backend; 0: as many as the machine has
  // On "cuda": the embedding, and a drafter's codebooks, stay in page-locked host memory.
  bool mapped_embedding = false;
  // On "cuda": what all of it, the CUDA context included, may take of the device's memory, as a
  // MemoryPlan counts it; 0: what is free. What cannot fit is refused before weights are loaded.
  uint64_t device_bytes = 0;
  KvType kv = KvType::kBf16;
  std::string drafter;  // folder of a DFlash or DFlash2 drafter made for the checkpoint; "": none
  DrafterOptions drafter_options;  // how its weights are held, what it may propose
  // Streams that run at once, 1 .. 8; further requests wait. 0: as many as memory allows, on a
  // device those that can hold 32,768 positions each.
  int streams = 0;
  // Positions that all streams together may hold, in whole pages of 256; 0: as memory allows, on a
  // device what the plan leaves to them. A request is promised its prompt and max_tokens when it is
  // admitted.
  int64_t context = 0;
  size_t kept_bytes = size_t{1} << 30;  // bound of kept states; 0: none are kept
  // Fill key/value pages with NaN before use: what reads a key that was never stored then shows.
  bool poison_pages = false;
};

class Session {
 public:
  // Opens DIR, and the drafter: checks headers, config, scales and whether a device has room, then
  // loads. All or nothing. kResource names the largest that would fit.
  static Result<std::unique_ptr<Session>> Open(const std::string& directory,
                                               const SessionOptions& options = {});
  // The same on a backend of the caller's; device, tier, threads and mapped_embedding are its own,
  // and so is a bound of what it may take; device_bytes is what is planned with.
  static Result<std::unique_ptr<Session>> Open(const std::string& directory,
                                               const SessionOptions& options,
                                               std::unique_ptr<Backend> backend);
  ~Session();

  // Runs one request, and whatever else is active, until it is done.
  Result<Generation> Generate(const GenerateRequest& request);

  // Queues a request: first in, first out. kOutOfRange names what is wrong in it; kResource says
  // that it could never fit.
  Result<StreamId> Submit(GenerateRequest request);
  // One round of all active streams; false when there is none left. Callbacks may Submit, Cancel
  // and Take, not ask for another round.
  Result<bool> Round();
  // Ends a stream at any point; what it drew can be taken. False when it was done already.
  bool Cancel(StreamId id);
  bool IsDone(StreamId id) const;
  // The outcome of a finished stream, once: its generation, or the error that ended it alone.
  Result<Generation> Take(StreamId id);

  // fp32 logits [ids, vocab] of a fresh sequence fed `ids`, `chunk` rows at a time (0: all).
  // kOutOfRange when one is not finite.
  Result<std::vector<float>> Logits(std::span<const int32_t> ids, int64_t chunk = 0);

  // Null when the folder holds no tokenizer.json.
  const Tokenizer* tokenizer() const;
  const Checkpoint& checkpoint() const;
  const CheckpointInventory& inventory() const;
  const Model& model() const;
  // Null without a drafter.
  const Drafter* drafter() const;
  const DrafterCheckpoint* drafter_checkpoint() const;
  // What the streams run on; for suites that drive it themselves, while no stream is active.
  Target& target();
  const std::vector<int32_t>& stop_ids() const;
  // As they were given, but for the number of streams, which is settled.
  const SessionOptions& options() const;
  int64_t vocab_size() const;
  // Ids that may be drawn: the tokenizer's, or the whole vocabulary where there is none. Rows of
  // the head beyond are padding.
  int64_t drawable_ids() const;
  std::string backend_name() const;             // "cpu", "cuda"
  std::string tier() const;                     // "avx512", "sm_90"
  std::optional<BackendDevice> device() const;  // absent on the CPU backend

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_RUN_SESSION_H_
