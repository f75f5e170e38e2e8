// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/scratch_clean.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "conformance/cases/prompt_row.h"
#include "conformance/cases/row_trace.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr int64_t kRows = 48;  // a call: less than the prompt, so that it comes in pieces
constexpr size_t kPrompt = 134;
constexpr size_t kWindow = 9;
constexpr size_t kBeside = 21;
constexpr int64_t kCommitted = 5;
constexpr size_t kAfter = 3;

Result<PromptRun> Play(const Session& session, const ScratchOptions& scratch) {
  const Model& model = session.model();
  const std::vector<int32_t> ids = BuiltInPrompt(session.drawable_ids());
  const auto all = std::span(ids);
  ForwardPass pass = TRY(ForwardPass::Create(model, kRows, {}, scratch));
  const auto sequence = [&] {
    return Sequence::Create(*model.backend, model.config, session.options().kv);
  };
  Sequence first = TRY(sequence());
  Sequence second = TRY(sequence());
  VerifyWindow window = TRY(VerifyWindow::Create(model, static_cast<int64_t>(kWindow)));
  RowTrace trace(session.vocab_size());
  trace.Keep(TRY(pass.Run(first, all.first(kPrompt), {.logits = LogitRows::kAll})).logits);
  const PassSlice slices[] = {
      {.sequence = &first,
       .ids = all.subspan(kPrompt, kWindow),
       .logits = LogitRows::kAll,
       .window = &window},
      {.sequence = &second, .ids = all.first(kBeside), .logits = LogitRows::kAll}};
  for (const auto& logits : TRY(pass.RunSlices(slices))) trace.Keep(logits);
  TRY(pass.Commit(first, window, kCommitted));
  for (Sequence* each : {&first, &second}) {
    const size_t at = static_cast<size_t>(each->position());
    trace.Keep(TRY(pass.Run(*each, all.subspan(at, kAfter), {.logits = LogitRows::kAll})).logits);
    trace.KeepState(TRY(each->StateDigest()));
  }
  return std::move(trace).Finish();
}

// The run with memory apart, made once.
class ScratchRuns {
 public:
  explicit ScratchRuns(const CaseSubject& subject) : subject_(subject) {}

  Result<Row> Compare(const ScratchOptions& scratch) {
    const Session& session = *subject_.session;
    if (!apart_) apart_ = TRY(Play(session, {.overlap = false}));
    Row row = ComparePromptRuns(*apart_, TRY(Play(session, scratch)));
    // That there was something to share.
    const ModelConfig& config = session.model().config;
    row.counts["shared_bytes"] = LayOutScratch(config, kRows, 0).shared_bytes;
    row.counts["apart_bytes"] = LayOutScratch(config, kRows, 0, false).shared_bytes;
    return row;
  }

 private:
  const CaseSubject subject_;
  std::optional<PromptRun> apart_;
};

}  // namespace

Status AddScratchCleanCases(const CaseSubject& subject, CaseRegistry& registry) {
  auto runs = std::make_shared<ScratchRuns>(subject);
  for (const bool poison : {false, true}) {
    TRY(registry.Add("scratch-clean",
                     CaseName("passes", {{"scratch", poison ? "poisoned" : "shared"}}),
                     [runs, poison] { return runs->Compare({.poison = poison}); }));
  }
  return {};
}

}  // namespace hallmark
