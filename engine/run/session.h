// SPDX-License-Identifier: Apache-2.0
// Session: the one header outsiders include. Opens a checkpoint on a backend and generates from it.
// Not thread-safe. Determinism: ids and logits are a function of checkpoint, ids, settings and
// backend arithmetic, never of threads, tier or how a prompt is cut.
#ifndef HALLMARK_ENGINE_RUN_SESSION_H_
#define HALLMARK_ENGINE_RUN_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/backend/geometry.h"
#include "engine/base/result.h"
#include "engine/run/sampler.h"

namespace hallmark {

class Checkpoint;
class Tokenizer;
struct CheckpointInventory;
struct Model;

struct SessionOptions {
  std::string device = "cpu";  // "cpu"; "cuda" where the build has it
  std::string tier;            // a CpuTierName; empty: the best the machine has
  int threads = 0;             // 0: as many as the machine has
  KvType kv = KvType::kBf16;
};

struct GenerateRequest {
  std::vector<int32_t> prompt;  // token ids, at least one
  int64_t max_tokens = 256;     // generated ids at most; 0 generates none
  SamplingParams sampling;
  bool ignore_stop = false;  // go on past stop ids
  int64_t prompt_chunk = 0;  // rows fed at once; 0: as many as fit. Changes no bit
  // Called with each generated id; returning false ends the run. May be empty.
  std::function<bool(int32_t)> on_token;
};

enum class StopReason { kMaxTokens, kStopToken, kCaller, kContext };
std::string_view StopReasonName(StopReason reason);  // "max_tokens", "stop_token", ...

struct Generation {
  std::vector<int32_t> ids;  // generated, the stop id included when one was drawn
  StopReason stop = StopReason::kMaxTokens;
  int64_t rounds = 0;  // forward passes after the prompt's
  double prompt_seconds = 0;
  double decode_seconds = 0;
};

class Session {
 public:
  // Opens DIR: checks headers, config and scales, then loads. All or nothing.
  static Result<std::unique_ptr<Session>> Open(const std::string& directory,
                                               const SessionOptions& options = {});
  ~Session();

  Result<Generation> Generate(const GenerateRequest& request);

  // fp32 logits [ids, vocab] of a fresh sequence fed `ids`, `chunk` rows at a time (0: all).
  // kOutOfRange when one is not finite.
  Result<std::vector<float>> Logits(std::span<const int32_t> ids, int64_t chunk = 0);

  // Null when the folder holds no tokenizer.json.
  const Tokenizer* tokenizer() const;
  const Checkpoint& checkpoint() const;
  const CheckpointInventory& inventory() const;
  const Model& model() const;
  const std::vector<int32_t>& stop_ids() const;
  const SessionOptions& options() const;
  int64_t vocab_size() const;
  // Ids that may be drawn: the tokenizer's, or the whole vocabulary where there is none. Rows of
  // the head beyond are padding.
  int64_t drawable_ids() const;
  std::string backend_name() const;  // "cpu"
  std::string tier() const;          // "avx512"

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_RUN_SESSION_H_
