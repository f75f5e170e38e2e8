// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/graph_equals_eager.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/prompt_row.h"
#include "conformance/cases/row_trace.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr size_t kIds = 640;
// Of all rounds, those of a kind that was there twice before, where nothing has moved since. What
// ran earlier decides whether there are a few more, so no more are counted.
constexpr uint64_t kLeastReplays = 40;

// The built-in prompt over and over.
std::vector<int32_t> Ids(int64_t drawable_ids) {
  const std::vector<int32_t> once = BuiltInPrompt(drawable_ids);
  std::vector<int32_t> ids;
  for (size_t i = 0; i < kIds; ++i) ids.push_back(once[i % once.size()]);
  return ids;
}

struct Trace {
  PromptRun run;
  uint64_t replays = 0;
};

class Rounds {
 public:
  static Result<Trace> Run(const Session& session, bool graphs) {
    Backend& backend = *session.model().backend;
    if (!backend.SetGraphs(graphs)) {
      return Fail(Code::kUnsupported, "the backend " + backend.name() + " records no graphs");
    }
    Rounds rounds(session);
    const int64_t before = backend.graph_replays();
    const Status ran = rounds.Play();
    backend.SetGraphs(true);
    if (!ran.has_value()) return Fail(ran.error());
    const int64_t replays = backend.graph_replays() - before;
    return Trace{std::move(rounds.trace_).Finish(), static_cast<uint64_t>(replays)};
  }

 private:
  explicit Rounds(const Session& session)
      : model_(session.model()),
        pool_(
            std::make_shared<KvPool>(*model_.backend, model_.config,
                                     KvPoolOptions{.type = session.options().kv, .poison = true})),
        ids_(Ids(session.drawable_ids())),
        trace_(session.vocab_size()) {}

  // A window of `rows` rows of each sequence, of which `joined` join.
  Status Round(std::span<Sequence* const> sequences, int64_t rows, int64_t joined) {
    std::vector<PassSlice> slices;
    for (size_t i = 0; i < sequences.size(); ++i) {
      slices.push_back(
          {.sequence = sequences[i],
           .ids = std::span(ids_).subspan(static_cast<size_t>(sequences[i]->position()),
                                          static_cast<size_t>(rows)),
           .logits = LogitRows::kAll,
           .window = &windows_[i]});
    }
    for (const auto& logits : TRY(pass_->RunSlices(slices))) trace_.Keep(logits);
    for (size_t i = 0; i < sequences.size(); ++i) {
      TRY(pass_->Commit(*sequences[i], windows_[i], joined));
    }
    return {};
  }

  // Old scratch goes back, and whoever gets its memory fills it with ones.
  Status Poison() {
    std::vector<Buffer> taken;
    for (size_t bytes = 256; bytes <= size_t{1} << 22; bytes *= 2) {
      for (int i = 0; i < 4; ++i) {
        taken.push_back(TRY(model_.backend->Allocate(bytes)));
        TRY(model_.backend->Fill(taken.back().data(), 0xFF, bytes));
      }
    }
    return model_.backend->Finish();
  }

  Status Play() {
    pass_.emplace(TRY(ForwardPass::Create(model_, 128, {1})));
    for (int i = 0; i < 2; ++i) windows_.push_back(TRY(VerifyWindow::Create(model_, 9)));
    Sequence first = TRY(Sequence::Create(pool_, model_.config));
    Sequence second = TRY(Sequence::Create(pool_, model_.config));
    Sequence* const one[] = {&first};
    Sequence* const both[] = {&first, &second};
    trace_.Keep(TRY(pass_->Run(first, std::span(ids_).first(5))).logits);
    for (const int64_t rows : {1, 8, 3}) {
      for (int i = 0; i < 4; ++i) TRY(Round(one, rows, (rows + 1) / 2));
    }
    TRY(Poison());
    // Scratch grows with a wide call of another sequence; what it left is overwritten.
    trace_.Keep(TRY(pass_->Run(second, std::span(ids_).first(128))).logits);
    TRY(Poison());
    for (int i = 0; i < 4; ++i) TRY(Round(both, 8, i));
    // Past the page and the bound of the first graphs, to the next ones.
    const size_t at = static_cast<size_t>(first.position());
    trace_.Keep(TRY(pass_->Run(first, std::span(ids_).subspan(at, 480 - at))).logits);
    for (int i = 0; i < 12; ++i) TRY(Round(one, 8, 5));
    // A fork has other memory at the same place of its sequence.
    {
      Sequence fork = TRY(first.Fork());
      Sequence* const forked[] = {&fork};
      for (int i = 0; i < 3; ++i) TRY(Round(forked, 8, 1));
    }
    TRY(Poison());
    // Steps of one row that join at once.
    for (int i = 0; i < 5; ++i) {
      const PassSlice step{.sequence = &first,
                           .ids = std::span(ids_).subspan(static_cast<size_t>(first.position()), 1),
                           .logits = LogitRows::kAll};
      for (const auto& logits : TRY(pass_->RunSlices({&step, 1}))) trace_.Keep(logits);
    }
    for (Sequence* each : {&first, &second}) trace_.KeepState(TRY(each->StateDigest()));
    return {};
  }

  const Model& model_;
  std::shared_ptr<KvPool> pool_;
  std::vector<int32_t> ids_;
  std::optional<ForwardPass> pass_;
  std::vector<VerifyWindow> windows_;
  RowTrace trace_;
};

}  // namespace

Result<Row> CompareGraphsWithEager(const CaseSubject& subject) {
  // Graphs first: the scratch of a session that has run eagerly has grown already.
  const Trace replayed = TRY(Rounds::Run(*subject.session, true));
  const Trace eager = TRY(Rounds::Run(*subject.session, false));
  Row row = ComparePromptRuns(eager.run, replayed.run);
  row.counts["replays"] = std::min(replayed.replays, kLeastReplays);
  std::string why;
  if (replayed.replays < kLeastReplays) why = "few replays: " + std::to_string(replayed.replays);
  if (eager.replays != 0) why = "the eager run replayed a graph";
  if (row.outcome == Outcome::kPass && !why.empty()) {
    row.outcome = Outcome::kFail;
    row.detail = why;
  }
  return row;
}

Status AddGraphEqualsEagerCases(const CaseSubject& subject, CaseRegistry& registry) {
  return registry.Add("graph-equals-eager", "rounds",
                      [subject] { return CompareGraphsWithEager(subject); });
}

}  // namespace hallmark
