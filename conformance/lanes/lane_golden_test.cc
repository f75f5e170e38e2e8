// SPDX-License-Identifier: Apache-2.0
// Lanes against published numbers: the reference's greedy ids and arg-maxima along its own text,
// and how many ids a round the published drafter brings. Counts are printed.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/lane_runs.h"
#include "conformance/cases/wrapped_target.h"
#include "conformance/harness/comparators.h"
#include "conformance/harness/golden_tensor.h"
#include "conformance/harness/paths.h"
#include "conformance/harness/tolerances.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr char kModel[] = "models/scribe-11m-exl3";
constexpr char kDrafter[] = "models/scribe-11m-dflash2";
constexpr int kPrompts = 5;

template <typename T>
std::vector<T> Read(const SafetensorsFile& file, const std::string& name) {
  auto values = ReadGoldenTensor<T>(file, name);
  EXPECT_TRUE(values.has_value()) << values.error().ToString();
  return values.value_or(std::vector<T>());
}

class LaneGolden : public testing::Test {
 protected:
  void SetUp() override {
    auto session =
        Session::Open(GoldenPath(kModel), {.drafter = GoldenPath(kDrafter), .poison_pages = true});
    ASSERT_TRUE(session.has_value()) << session.error().ToString();
    session_ = std::move(*session);
    auto golden = SafetensorsFile::Open(GoldenPath(kModel) + "/golden.safetensors");
    ASSERT_TRUE(golden.has_value());
    golden_ = std::make_unique<SafetensorsFile>(std::move(*golden));
  }

  std::vector<int32_t> Ids(const std::string& name) { return Read<int32_t>(*golden_, name); }
  std::vector<float> Floats(const std::string& name) { return Read<float>(*golden_, name); }
  GenerateRequest Request(int prompt) {
    GenerateRequest request;
    request.prompt = Ids("prompt" + std::to_string(prompt));
    request.max_tokens = 96;
    request.ignore_stop = true;
    return request;
  }
  // Ids of `reply` that are the reference's, up to the first whose margin is too small to decide.
  size_t Agreeing(int prompt, const std::vector<int32_t>& reply) {
    const std::vector<int32_t> greedy = Ids("greedy" + std::to_string(prompt));
    const std::vector<float> margin = Floats("margin" + std::to_string(prompt));
    size_t i = 0;
    while (i < reply.size() && i < greedy.size() && margin[i] > min_margin_) {
      EXPECT_EQ(reply[i], greedy[i]) << "prompt " << prompt << ", id " << i;
      if (reply[i] != greedy[i]) break;
      ++i;
    }
    return i;
  }

  const double min_margin_ = Tolerance("scribe-logits-margin-bf16");
  std::unique_ptr<Session> session_;
  std::unique_ptr<SafetensorsFile> golden_;
};

TEST_F(LaneGolden, DraftedCopiedSharedAndDisturbedRepliesAreTheReferences) {
  std::vector<StreamId> ids;
  for (int i = 0; i < kPrompts; ++i) {
    GenerateRequest request = Request(i);
    request.draft = {.copy_match = i % 2 == 0 ? 3 : 0, .window = 7};
    auto id = session_->Submit(request);
    ASSERT_TRUE(id.has_value());
    ids.push_back(*id);
    // A neighbour that goes away after its first id must leave no trace.
    request.on_token = [](int32_t) { return false; };
    ASSERT_TRUE(session_->Submit(request).has_value());
  }
  while (*session_->Round()) {
  }
  size_t agreeing = 0;
  int64_t accepted = 0, copied = 0, peak = 0;
  for (int i = 0; i < kPrompts; ++i) {
    const auto reply = session_->Take(ids[static_cast<size_t>(i)]);
    ASSERT_TRUE(reply.has_value());
    agreeing += Agreeing(i, reply->ids);
    accepted += reply->accepted;
    copied += reply->copied;
    peak = std::max(peak, reply->peak_streams);
  }
  std::printf("%zu ids as the reference has them; %lld accepted, %lld copied, %lld streams\n",
              agreeing, static_cast<long long>(accepted), static_cast<long long>(copied),
              static_cast<long long>(peak));
  EXPECT_GT(agreeing, 50u);
  EXPECT_GT(accepted, 50);
  EXPECT_GT(copied, 0);
  EXPECT_GE(peak, kPrompts - 1);
}

TEST_F(LaneGolden, ResumedRepliesAreTheReferences) {
  size_t agreeing = 0;
  int64_t resumed = 0;
  for (int i = 0; i < kPrompts; ++i) {
    GenerateRequest request = Request(i);
    request.max_tokens = 20;
    ASSERT_TRUE(session_->Generate(request).has_value());
    const auto again = session_->Generate(request);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->resumed, static_cast<int64_t>(request.prompt.size()) - 1);
    resumed += again->resumed;
    agreeing += Agreeing(i, again->ids);
  }
  std::printf("%zu ids as the reference has them, %lld rows resumed\n", agreeing,
              static_cast<long long>(resumed));
  EXPECT_GT(agreeing, 20u);
}

// Along a recorded text, in windows that are verified and committed: every row's best id is the
// reference's wherever its margin decides.
TEST_F(LaneGolden, WindowsAlongATextHaveTheReferencesBestIds) {
  const auto file = SafetensorsFile::Open(GoldenPath(kDrafter) + "/golden_long.safetensors");
  ASSERT_TRUE(file.has_value());
  const auto text = Read<int32_t>(*file, "ids");
  const auto best = Read<int32_t>(*file, "argmax");
  const auto margin = Read<float>(*file, "margin");
  Target& target = session_->target();
  auto state = target.Create();
  ASSERT_TRUE(state.has_value());
  const size_t vocab = static_cast<size_t>(target.info().vocab);
  std::vector<float> all;
  for (size_t done = 0; done < text.size();) {
    const size_t rows = std::min<size_t>(text.size() - done, 1 + done % 9);
    const TargetSlice slice{.state = state->get(),
                            .ids = std::span(text).subspan(done, rows),
                            .logits = LogitRows::kAll,
                            .verify = true};
    const auto logits = target.Run({&slice, 1});
    ASSERT_TRUE(logits.has_value());
    // Part of the window only, the rest comes again: a rollback in every second one.
    const size_t joined = done % 2 == 0 ? rows : (rows + 1) / 2;
    ASSERT_TRUE(target.Commit(**state, static_cast<int64_t>(joined)).has_value());
    all.insert(all.end(), (*logits)[0].begin(),
               (*logits)[0].begin() + static_cast<ptrdiff_t>(joined * vocab));
    done += joined;
  }
  const ArgmaxAgreement agreement = CompareArgmax(best, margin, all, vocab, min_margin_);
  std::printf("%s\n", agreement.ToString().c_str());
  EXPECT_TRUE(agreement.Passed()) << agreement.ToString();
  EXPECT_GT(agreement.compared, 300u);
}

// The reference's own greedy text as a script, so that the drafter is measured along it.
TEST_F(LaneGolden, TheDrafterBringsThePublishedIdsARound) {
  constexpr double kPublished[kPrompts] = {1.43, 1.42, 1.87, 1.37, 1.59};
  const double allowed = Tolerance("draft-ids-a-round");
  for (int i = 0; i < kPrompts; ++i) {
    GenerateRequest request = Request(i);
    std::vector<int32_t> script = request.prompt;
    const std::vector<int32_t> greedy = Ids("greedy" + std::to_string(i));
    script.insert(script.end(), greedy.begin(), greedy.end());
    ScriptedTarget target(session_->target(), script);
    request.draft = {.copy_match = 0, .window = 7};
    auto scheduler = Scheduler::Create(target, {}, {});
    ASSERT_TRUE(scheduler.has_value());
    const auto run = RunOne(**scheduler, request);
    ASSERT_TRUE(run.has_value());
    const Generation& reply = run->generation;
    EXPECT_EQ(reply.ids, greedy);
    const double a_round =
        static_cast<double>(reply.accepted + reply.rounds) / static_cast<double>(reply.rounds);
    std::printf("prompt %d: %.2f ids a round, published %.2f\n", i, a_round, kPublished[i]);
    EXPECT_NEAR(a_round, kPublished[i], allowed);
  }
}

}  // namespace
}  // namespace hallmark
