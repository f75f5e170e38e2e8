// SPDX-License-Identifier: Apache-2.0
// Rounds that are replayed as graphs against the same rounds launched one by one: every logit and
// the state, over the lengths at which a graph is recorded anew, with streams that come and go and
// scratch that grows in between. Clause graph-equals-eager.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/cases/bits_row.h"
#include "conformance/cases/lane_runs.h"
#include "conformance/gpu/gpu_session.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"

namespace hallmark {
namespace {

constexpr uint64_t kSeed = 0x677261706873ull;

struct Trace {
  std::vector<float> logits;
  std::string digests;
  int64_t replays = 0;
};

class Rounds {
 public:
  static Result<Trace> Run(const Session& session, bool graphs) {
    Rounds rounds(session);
    Backend& backend = *session.model().backend;
    if (!backend.SetGraphs(graphs)) return Fail(Code::kUnsupported, "no graphs here");
    const int64_t before = backend.graph_replays();
    const Status ran = rounds.Play();
    backend.SetGraphs(true);
    if (!ran.has_value()) return Fail(ran.error());
    rounds.trace_.replays = backend.graph_replays() - before;
    return std::move(rounds.trace_);
  }

 private:
  explicit Rounds(const Session& session)
      : session_(session),
        model_(session.model()),
        pool_(
            std::make_shared<KvPool>(*model_.backend, model_.config,
                                     KvPoolOptions{.type = session.options().kv, .poison = true})),
        ids_(RulePrompt(session.drawable_ids(), 1200, kSeed)) {}

  void Keep(const std::vector<float>& logits) {
    trace_.logits.insert(trace_.logits.end(), logits.begin(), logits.end());
  }

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
    for (const auto& logits : TRY(pass_->RunSlices(slices))) Keep(logits);
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
    Keep(TRY(pass_->Run(first, std::span(ids_).first(5))).logits);
    for (const int64_t rows : {1, 8, 3}) {
      for (int i = 0; i < 4; ++i) TRY(Round(one, rows, (rows + 1) / 2));
    }
    TRY(Poison());
    // Scratch grows with a wide call of another sequence; what it left is overwritten.
    Keep(TRY(pass_->Run(second, std::span(ids_).first(128))).logits);
    TRY(Poison());
    for (int i = 0; i < 4; ++i) TRY(Round(both, 8, i));
    // Past the page and the bound of the first graphs, to the next ones.
    const size_t at = static_cast<size_t>(first.position());
    Keep(TRY(pass_->Run(first, std::span(ids_).subspan(at, 480 - at))).logits);
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
      for (const auto& logits : TRY(pass_->RunSlices({&step, 1}))) Keep(logits);
    }
    trace_.digests = TRY(first.StateDigest()) + TRY(second.StateDigest());
    return {};
  }

  const Session& session_;
  const Model& model_;
  std::shared_ptr<KvPool> pool_;
  std::vector<int32_t> ids_;
  std::optional<ForwardPass> pass_;
  std::vector<VerifyWindow> windows_;
  Trace trace_;
};

Result<Row> Compare(const Session& session) {
  // Graphs first: the scratch of a session that has run eagerly has grown already.
  const Trace replayed = TRY(Rounds::Run(session, true));
  const Trace eager = TRY(Rounds::Run(session, false));
  BitsRow row;
  row.Compare<float>(eager.logits, replayed.logits, "logits");
  row.CompareText(eager.digests, replayed.digests, "states");
  row.Count("replays", replayed.replays);
  if (replayed.replays < 40) row.Refuse("few replays: " + std::to_string(replayed.replays));
  if (eager.replays != 0) row.Refuse("the eager run replayed a graph");
  const Liveness liveness =
      MeasureLiveness(eager.logits, static_cast<size_t>(session.vocab_size()));
  if (!liveness.Passed()) row.Refuse("dead logits: " + liveness.ToString());
  return row.Finish();
}

class Graphs : public testing::TestWithParam<std::tuple<const char*, KvType>> {};

TEST_P(Graphs, ReplayedRoundsEqualEagerOnes) {
  const auto [name, kv] = GetParam();
  const auto session = OpenOnDevice(GoldenModelPath(name), {.kv = kv});
  ASSERT_TRUE(session.has_value()) << session.error().ToString();
  EXPECT_EQ(WhyNotPassed(Compare(**session), name), "");
}

INSTANTIATE_TEST_SUITE_P(Golden, Graphs,
                         testing::Combine(testing::Values(kScribe, kPrism),
                                          testing::Values(KvType::kBf16, KvType::kFp8E4m3)),
                         [](const testing::TestParamInfo<Graphs::ParamType>& info) {
                           const std::string name = std::get<0>(info.param);
                           return name.substr(0, name.find('-')) + "_" +
                                  KvName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace hallmark
