// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/prompt_runs.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/base/random.h"
#include "engine/base/sha256.h"
#include "engine/model/forward.h"
#include "engine/run/session.h"

namespace hallmark {

std::vector<int32_t> BuiltInPrompt(int64_t drawable_ids) {
  SplitMix64 random(kPromptSeed);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < kPromptTokens; ++i) {
    ids.push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(drawable_ids))));
  }
  return ids;
}

Result<const PromptRun*> PromptRuns::Get(int64_t chunk) {
  auto found = runs_.find(chunk);
  if (found == runs_.end()) found = runs_.emplace(chunk, TRY(Run(chunk))).first;
  return &found->second;
}

Result<PromptRun> PromptRuns::Run(int64_t chunk) const {
  const Session& session = *subject_.session;
  const Model& model = session.model();
  const std::vector<int32_t> ids = BuiltInPrompt(session.drawable_ids());
  const size_t vocab = static_cast<size_t>(session.vocab_size());
  const size_t step = chunk == 0 ? ids.size() : static_cast<size_t>(chunk);

  ForwardPass pass = TRY(ForwardPass::Create(model));
  Sequence sequence = TRY(Sequence::Create(*model.backend, model.config, session.options().kv));
  PromptRun run{.row_values = vocab};
  std::vector<float> logits;
  for (size_t done = 0; done < ids.size(); done += step) {
    const auto piece = std::span(ids).subspan(done, std::min(step, ids.size() - done));
    const ForwardOutput output = TRY(pass.Run(sequence, piece, {.logits = LogitRows::kAll}));
    if (output.logits.size() != piece.size() * vocab) {
      return Fail(Code::kInternal, "the forward pass gave another number of logits than asked for");
    }
    for (size_t row = 0; row < piece.size(); ++row) {
      run.logit_digests.push_back(
          Sha256HexOf(std::span(output.logits).subspan(row * vocab, vocab)));
    }
    logits.insert(logits.end(), output.logits.begin(), output.logits.end());
  }
  run.state_digest = TRY(sequence.StateDigest());
  run.liveness = MeasureLiveness(logits, vocab);
  return run;
}

}  // namespace hallmark
