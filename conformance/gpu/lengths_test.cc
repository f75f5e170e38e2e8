// SPDX-License-Identifier: Apache-2.0
// Lengths at which a kernel changes its way of working: rows of a call around the heights of tiles,
// contexts around the ends of key chunks, cuts of a prompt, tails of a resumed one. None may change
// a bit. Clauses verify-equals-serial, commit-equals-serial, chunked-equals-whole,
// resumed-equals-fresh.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/cases/bits_row.h"
#include "conformance/cases/lane_runs.h"
#include "conformance/gpu/gpu_session.h"
#include "engine/base/sha256.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"

namespace hallmark {
namespace {

void ExpectPass(const Result<Row>& result, const std::string& name) {
  EXPECT_EQ(WhyNotPassed(result, name), "");
}

constexpr int64_t kWidths[] = {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65};
constexpr int64_t kTails[] = {1, 15, 16, 17, 63, 64, 65, 127, 128, 129};
constexpr uint64_t kSeed = 0x6C656E67746873ull;

// head_dim 128, three query heads a key head.
const SyntheticModel kNarrow = {.hidden = 256,
                                .intermediate = 600,
                                .vocab = 1000,
                                .heads = 6,
                                .kv_heads = 2,
                                .head_dim = 128,
                                .key_heads = 2,
                                .value_heads = 6};
// head_dim 256, one key head.
const SyntheticModel kWide = {.hidden = 384,
                              .intermediate = 512,
                              .vocab = 1000,
                              .heads = 4,
                              .kv_heads = 1,
                              .head_dim = 256,
                              .key_heads = 1,
                              .value_heads = 4};
constexpr int64_t kSyntheticPositions = 8192;

class Lengths : public testing::TestWithParam<std::tuple<const char*, KvType>> {
 protected:
  void SetUp() override {
    const std::string name = std::get<0>(GetParam());
    std::string directory = GoldenModelPath(kScribe);
    if (name != "scribe") {
      auto folder = SyntheticFolder::Write(name == "narrow" ? kNarrow : kWide, kSyntheticPositions);
      ASSERT_TRUE(folder.has_value()) << folder.error().ToString();
      folder_.emplace(*std::move(folder));
      directory = folder_->path();
    }
    auto session = OpenOnDevice(directory, {.kv = kv(), .poison_pages = true});
    ASSERT_TRUE(session.has_value()) << session.error().ToString();
    session_ = *std::move(session);
    auto pass = ForwardPass::Create(model());
    ASSERT_TRUE(pass.has_value()) << pass.error().ToString();
    pass_.emplace(*std::move(pass));
    pool_ = std::make_shared<KvPool>(*model().backend, model().config,
                                     KvPoolOptions{.type = kv(), .poison = true});
  }

  bool synthetic() const { return folder_.has_value(); }
  KvType kv() const { return std::get<1>(GetParam()); }
  const Model& model() const { return session_->model(); }
  size_t vocab() const { return static_cast<size_t>(session_->vocab_size()); }
  std::vector<int32_t> Ids(int64_t count) const {
    return RulePrompt(session_->drawable_ids(), count, kSeed);
  }

  // Feeds pieces of `cuts` rows in turn, the last cut again and again. Digests of all logits.
  Status Feed(Sequence& sequence, std::span<const int32_t> ids, std::vector<int64_t> cuts,
              std::vector<std::string>* digests) {
    size_t piece = 0;
    for (size_t done = 0; done < ids.size();) {
      const size_t rows = std::min(ids.size() - done, static_cast<size_t>(cuts[piece]));
      if (piece + 1 < cuts.size()) ++piece;
      const LogitRows wanted = digests != nullptr ? LogitRows::kAll : LogitRows::kNone;
      const ForwardOutput output =
          TRY(pass_->Run(sequence, ids.subspan(done, rows), {.logits = wanted}));
      for (size_t row = 0; digests != nullptr && row < rows; ++row) {
        digests->push_back(Sha256HexOf(std::span(output.logits).subspan(row * vocab(), vocab())));
      }
      done += rows;
    }
    return {};
  }

  Result<Row> WindowsAround(int64_t border);
  Result<Row> Cuts(int64_t tokens, const std::vector<std::vector<int64_t>>& all);
  Result<Row> Resumed(LaneRuns& runs, int64_t kept, int64_t tail);

  std::optional<SyntheticFolder> folder_;
  std::unique_ptr<Session> session_;
  std::optional<ForwardPass> pass_;
  std::shared_ptr<KvPool> pool_;
};

// Windows of every width whose rows stand on both sides of border - 1, border and border + 1,
// against steps of one row; and the state after half of the window, and all of it, has joined.
Result<Row> Lengths::WindowsAround(int64_t border) {
  struct Window {
    int64_t begin, rows;
  };
  std::vector<Window> windows;
  std::map<int64_t, std::optional<Sequence>> starts;
  std::map<int64_t, std::string> states;
  for (const int64_t middle : {border - 1, border, border + 1}) {
    for (const int64_t rows : kWidths) {
      const Window window{middle - rows / 2, rows};
      windows.push_back(window);
      starts[window.begin];
      states[window.begin + rows / 2];
      states[window.begin + rows];
    }
  }
  const int64_t first = starts.begin()->first;
  const int64_t end = states.rbegin()->first;
  const std::vector<int32_t> ids = Ids(end);
  const auto part = [&ids](int64_t begin, int64_t rows) {
    return std::span(ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(rows));
  };

  Sequence serial = TRY(Sequence::Create(pool_, model().config));
  TRY(Feed(serial, part(0, first), {ForwardPass::kMaxRows}, nullptr));
  std::map<int64_t, std::vector<float>> logits;
  for (int64_t at = first;; ++at) {
    if (const auto start = starts.find(at); start != starts.end()) {
      start->second.emplace(TRY(serial.Fork()));
    }
    if (const auto state = states.find(at); state != states.end()) {
      state->second = TRY(serial.StateDigest());
    }
    if (at == end) break;
    logits[at] = std::move(TRY(pass_->Run(serial, part(at, 1))).logits);
  }

  BitsRow row;
  VerifyWindow waiting = TRY(VerifyWindow::Create(model(), std::ranges::max(kWidths)));
  for (const Window& window : windows) {
    const std::string where = "rows " + std::to_string(window.begin) + " to " +
                              std::to_string(window.begin + window.rows - 1);
    for (const int64_t joined : {window.rows / 2, window.rows}) {
      Sequence sequence = TRY(starts[window.begin]->Fork());
      const PassSlice slice{.sequence = &sequence,
                            .ids = part(window.begin, window.rows),
                            .logits = LogitRows::kAll,
                            .window = &waiting};
      const auto verified = TRY(pass_->RunSlices({&slice, 1}));
      for (int64_t i = 0; i < window.rows; ++i) {
        row.Compare<float>(
            logits[window.begin + i],
            std::span(verified[0]).subspan(static_cast<size_t>(i) * vocab(), vocab()),
            where + ": the logits of row " + std::to_string(i));
      }
      TRY(pass_->Commit(sequence, waiting, joined));
      row.CompareText(states[window.begin + joined], TRY(sequence.StateDigest()),
                      where + ": the state after " + std::to_string(joined) + " rows");
      row.Count("windows", 1);
    }
  }
  std::vector<float> all;
  for (const auto& [at, values] : logits) all.insert(all.end(), values.begin(), values.end());
  const Liveness liveness = MeasureLiveness(all, vocab());
  if (!liveness.Passed()) row.Refuse("dead logits: " + liveness.ToString());
  return row.Finish();
}

Result<Row> Lengths::Cuts(int64_t tokens, const std::vector<std::vector<int64_t>>& all) {
  const std::vector<int32_t> ids = Ids(tokens);
  Sequence whole = TRY(Sequence::Create(pool_, model().config));
  std::vector<std::string> expected;
  TRY(Feed(whole, ids, {tokens}, &expected));
  const std::string state = TRY(whole.StateDigest());
  BitsRow row;
  for (const std::vector<int64_t>& cuts : all) {
    std::string where = "pieces of";
    for (const int64_t cut : cuts) where += " " + std::to_string(cut);
    Sequence sequence = TRY(Sequence::Create(pool_, model().config));
    std::vector<std::string> actual;
    TRY(Feed(sequence, ids, cuts, &actual));
    row.CompareDigests(state, TRY(sequence.StateDigest()), 1, where + ": the state");
    if (expected.size() != actual.size()) row.Refuse(where + ": another number of rows");
    for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
      row.CompareDigests(expected[i], actual[i], vocab(),
                         where + ": the logits of position " + std::to_string(i));
    }
    row.Count("cuts", 1);
  }
  return row.Finish();
}

Result<Row> Lengths::Resumed(LaneRuns& runs, int64_t kept, int64_t tail) {
  constexpr int64_t kTokens = 3;
  constexpr size_t kKeptBytes = size_t{1} << 32;
  const std::vector<int32_t> ids = Ids(kept + tail);
  const std::unique_ptr<Scheduler> warm = runs.NewScheduler(runs.target(), kKeptBytes);
  GenerateRequest first = runs.Request({ids.begin(), ids.begin() + kept}, "greedy", 0);
  first.keep_at = {kept};
  TRY(RunOne(*warm, first));
  const GenerateRequest request = runs.Request(ids, "k20p95", kTokens);
  const LaneRun* fresh = TRY(runs.Serial(request));
  const LaneRun resumed = TRY(RunOne(*warm, request));
  BitsRow row;
  CompareLaneRuns(*fresh, resumed, vocab(), "resumed", row);
  if (resumed.generation.resumed != kept) {
    row.Refuse("resumed " + std::to_string(resumed.generation.resumed) + " rows, expected " +
               std::to_string(kept));
  }
  row.Count("resumed_rows", static_cast<uint64_t>(resumed.generation.resumed));
  return row.Finish();
}

TEST_P(Lengths, WindowsAtTheFirstChunksEndEqualSteps) { ExpectPass(WindowsAround(512), "512"); }

// The golden model ends at 4096 positions: its last windows end there.
TEST_P(Lengths, WindowsFarOutEqualSteps) {
  const int64_t border = synthetic() ? 4096 : 4096 - 34;
  ExpectPass(WindowsAround(border), std::to_string(border));
}

TEST_P(Lengths, AnyCutOfAPromptEqualsTheWhole) {
  std::vector<std::vector<int64_t>> cuts = {{1}, {2}, {7}};
  for (const int64_t width : kWidths) {
    if (width > 2) cuts.push_back({width});
  }
  cuts.insert(cuts.end(),
              {{127}, {128}, {129}, {511, 1, 1, 128}, {512}, {513}, {1, 64, 65, 2, 129, 33}});
  ExpectPass(Cuts(1100, cuts), "1100 ids");
}

TEST_P(Lengths, AnyCutOfALongPromptEqualsTheWhole) {
  const int64_t tokens = synthetic() ? 4200 : 4096;
  ExpectPass(Cuts(tokens, {{17}, {65}, {127}, {1, 128}, {4095 - 128, 1, 1, 33}}),
             std::to_string(tokens) + " ids");
}

TEST_P(Lengths, AResumedTailEqualsAFreshPrompt) {
  const CaseSubject subject{.session = session_.get(), .golden = GoldenPath("")};
  LaneRuns runs(subject);
  for (const int64_t kept : {int64_t{447}, int64_t{512}, synthetic() ? int64_t{4090} : 1023}) {
    for (const int64_t tail : kTails) {
      ExpectPass(Resumed(runs, kept, tail),
                 "kept " + std::to_string(kept) + ", tail " + std::to_string(tail));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Lengths,
                         testing::Combine(testing::Values("scribe", "narrow", "wide"),
                                          testing::Values(KvType::kBf16, KvType::kFp8E4m3)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  KvName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace hallmark
