// SPDX-License-Identifier: Apache-2.0
// Clauses draft-golden, concurrent-equals-solo and chunked-equals-whole, of proposals: who shares a
// call, how rows were appended, tiers, threads and forks change no bit.
#include "engine/draft/draft_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "conformance/draft/draft_golden.h"
#include "conformance/draft/loaded_drafter.h"
#include "conformance/harness/comparators.h"
#include "conformance/harness/paths.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

struct Drafting {
  const char* target;
  const char* drafter;
};
constexpr Drafting kScribe = {"models/scribe-11m-exl3", "models/scribe-11m-dflash2"};
constexpr Drafting kPrism = {"models/prism-exl3", "models/prism-dflash"};

LoadedDrafter Load(const Drafting& names, const DrafterOptions& options = {},
                   CpuBackendOptions cpu = {}) {
  auto loaded = LoadDrafter(GoldenPath(names.target), GoldenPath(names.drafter), options, cpu);
  EXPECT_TRUE(loaded.has_value()) << loaded.error().ToString();
  return std::move(*loaded);
}

std::vector<float> RandomTaps(const Drafter& drafter, int64_t rows, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> taps(static_cast<size_t>(rows * drafter.tap_width()));
  for (float& value : taps) value = random.NextNormal();
  return taps;
}

DraftContext ContextOf(DraftPass& pass, const Drafter& drafter, std::span<const float> taps,
                       int64_t chunk = 128) {
  auto context = DraftContext::Create(drafter);
  EXPECT_TRUE(context.has_value());
  EXPECT_TRUE(AppendTaps(pass, drafter, *context, taps, chunk).has_value());
  return std::move(*context);
}

DraftProposal ProposeOne(DraftPass& pass, const DraftRequest& request) {
  auto proposals = pass.Propose(std::span(&request, 1), true);
  EXPECT_TRUE(proposals.has_value()) << proposals.error().ToString();
  return proposals ? std::move(proposals->front()) : DraftProposal{};
}

void ExpectSame(const DraftProposal& expected, const DraftProposal& actual) {
  EXPECT_EQ(expected.ids, actual.ids);
  const auto bits = CompareBits<float>(expected.rows, actual.rows);
  EXPECT_TRUE(bits.Passed()) << bits.ToString();
}

// A generator of noise as keyed as the sampler's, without being it.
double Noise(int64_t position, int32_t token) {
  SplitMix64 random(static_cast<uint64_t>(position) << 32 | static_cast<uint32_t>(token));
  return -std::log(-std::log((static_cast<double>(random.Next() >> 11) + 0.5) * 0x1p-53));
}

class DraftPassTest : public testing::TestWithParam<Drafting> {};
INSTANTIATE_TEST_SUITE_P(Generation, DraftPassTest, testing::Values(kScribe, kPrism),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "Second" : "First");
                         });

TEST_P(DraftPassTest, WhoSharesTheCallChangesNoBit) {
  const LoadedDrafter loaded = Load(GetParam());
  const Drafter& drafter = *loaded.drafter;
  DraftPass pass = *DraftPass::Create(drafter);
  // More streams than go through the layers at once, of lengths on both sides of every window.
  const int64_t together = DraftPass::kMaxRows / drafter.block_size();
  std::vector<DraftContext> contexts;
  std::vector<DraftRequest> requests;
  for (int64_t i = 0; i < together + 3; ++i) {
    contexts.push_back(ContextOf(pass, drafter, RandomTaps(drafter, i * 29 % 200, i)));
  }
  for (size_t i = 0; i < contexts.size(); ++i) {
    requests.push_back({.context = &contexts[i], .anchor = static_cast<int32_t>(i * 31)});
    if (i % 3 == 1) requests.back().noise = Noise;
    if (i % 3 == 1) requests.back().temperature = 0.8;
  }
  const auto shared = pass.Propose(requests, true);
  ASSERT_TRUE(shared.has_value()) << shared.error().ToString();
  ASSERT_EQ(shared->size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ((*shared)[i].ids.size(), static_cast<size_t>(drafter.block_size() - 1));
    ExpectSame(ProposeOne(pass, requests[i]), (*shared)[i]);
  }
}

TEST_P(DraftPassTest, HowRowsWereAppendedChangesNoBit) {
  const LoadedDrafter loaded = Load(GetParam());
  const Drafter& drafter = *loaded.drafter;
  DraftPass pass = *DraftPass::Create(drafter);
  const std::vector<float> taps = RandomTaps(drafter, 300, 3);
  DraftContext whole = ContextOf(pass, drafter, taps, 300);
  const DraftProposal expected = ProposeOne(pass, {.context = &whole, .anchor = 5});
  for (const int64_t chunk : {1, 7, 64, 127, 128, 129, 299}) {
    DraftContext context = ContextOf(pass, drafter, taps, chunk);
    EXPECT_EQ(context.length(), 300);
    ExpectSame(expected, ProposeOne(pass, {.context = &context, .anchor = 5}));
  }
  // With a proposal between any two appends.
  DraftContext context = *DraftContext::Create(drafter);
  const size_t width = static_cast<size_t>(drafter.tap_width());
  for (size_t row = 0; row < 300; row += 25) {
    const auto rows = std::span(taps).subspan(row * width, 25 * width);
    ASSERT_TRUE(AppendTaps(pass, drafter, context, rows).has_value());
    ProposeOne(pass, {.context = &context, .anchor = 9});
  }
  ExpectSame(expected, ProposeOne(pass, {.context = &context, .anchor = 5}));
}

TEST_P(DraftPassTest, TiersAndThreadsGiveTheSameBits) {
  DraftProposal expected;
  for (const CpuTier tier : SupportedCpuTiers()) {
    for (const int threads : {1, 3}) {
      const LoadedDrafter loaded =
          Load(GetParam(), {.weights = DrafterWeights::kAffine4, .affine_min_elements = 100000},
               {.threads = threads, .tier = tier});
      DraftPass pass = *DraftPass::Create(*loaded.drafter);
      DraftContext context = ContextOf(pass, *loaded.drafter, RandomTaps(*loaded.drafter, 140, 4));
      DraftProposal proposal = ProposeOne(pass, {.context = &context, .anchor = 77});
      if (expected.ids.empty()) expected = proposal;
      ExpectSame(expected, proposal);
    }
  }
}

TEST_P(DraftPassTest, AForkGoesItsOwnWay) {
  const LoadedDrafter loaded = Load(GetParam());
  const Drafter& drafter = *loaded.drafter;
  DraftPass pass = *DraftPass::Create(drafter);
  const std::vector<float> taps = RandomTaps(drafter, 110, 5);
  const std::vector<float> more = RandomTaps(drafter, 40, 6);
  const std::vector<float> other = RandomTaps(drafter, 40, 7);
  for (const bool proposed_before : {false, true}) {  // pending taps, or pages
    DraftContext context = ContextOf(pass, drafter, taps);
    if (proposed_before) ProposeOne(pass, {.context = &context, .anchor = 1});
    auto fork = context.Fork();
    ASSERT_TRUE(fork.has_value());
    const DraftProposal before = ProposeOne(pass, {.context = &*fork, .anchor = 1});
    ASSERT_TRUE(AppendTaps(pass, drafter, context, more).has_value());
    ExpectSame(before, ProposeOne(pass, {.context = &*fork, .anchor = 1}));
    ASSERT_TRUE(AppendTaps(pass, drafter, *fork, other).has_value());
    for (const auto& [one, rest] : {std::pair{&context, &more}, std::pair{&*fork, &other}}) {
      std::vector<float> all = taps;
      all.insert(all.end(), rest->begin(), rest->end());
      DraftContext fresh = ContextOf(pass, drafter, all);
      ExpectSame(ProposeOne(pass, {.context = &fresh, .anchor = 2}),
                 ProposeOne(pass, {.context = one, .anchor = 2}));
    }
  }
}

// The noisy choice of each row, from the rows the pass hands out.
TEST_P(DraftPassTest, NoiseIsAddedAtTheTokensOwnPosition) {
  const LoadedDrafter loaded = Load(GetParam());
  const Drafter& drafter = *loaded.drafter;
  DraftPass pass = *DraftPass::Create(drafter);
  DraftContext context = ContextOf(pass, drafter, RandomTaps(drafter, 50, 8));
  const DraftRequest greedy{.context = &context, .anchor = 3};
  const DraftProposal plain = ProposeOne(pass, greedy);
  // Noise that wants one id wherever it can be had, at one position only.
  const int32_t wanted = plain.ids[2];
  std::vector<int64_t> asked;
  DraftRequest request = greedy;
  request.temperature = 1.0;
  request.noise = [&](int64_t position, int32_t) {
    if (asked.empty() || asked.back() != position) asked.push_back(position);
    return 0.0;
  };
  ExpectSame(plain, ProposeOne(pass, request));  // no noise is no change
  std::vector<int64_t> positions;
  for (int64_t i = 1; i < drafter.block_size(); ++i) positions.push_back(50 + i);
  EXPECT_EQ(asked, positions);
  request.noise = [&](int64_t position, int32_t id) {
    return position == 53 && id != wanted ? 1e9 : 0.0;
  };
  const DraftProposal pushed = ProposeOne(pass, request);
  EXPECT_EQ(pushed.ids[0], plain.ids[0]);
  EXPECT_EQ(pushed.ids[1], plain.ids[1]);
  EXPECT_NE(pushed.ids[2], wanted);
  // At a temperature of 0 scores drown all noise.
  request.noise = Noise;
  request.temperature = 0.0;
  EXPECT_EQ(ProposeOne(pass, request).ids, plain.ids);
  request.temperature = 100.0;
  EXPECT_NE(ProposeOne(pass, request).ids, plain.ids);
}

TEST_P(DraftPassTest, TheDraftVocabularyBoundsProposalsAndNothingElse) {
  const LoadedDrafter whole = Load(GetParam());
  const LoadedDrafter part = Load(GetParam(), {.vocabulary = {{300, 310}, {700, 801}}});
  DraftPass whole_pass = *DraftPass::Create(*whole.drafter);
  DraftPass part_pass = *DraftPass::Create(*part.drafter);
  const std::vector<float> taps = RandomTaps(*whole.drafter, 60, 9);
  DraftContext whole_context = ContextOf(whole_pass, *whole.drafter, taps);
  DraftContext part_context = ContextOf(part_pass, *part.drafter, taps);
  const DraftProposal expected = ProposeOne(whole_pass, {.context = &whole_context, .anchor = 3});
  DraftRequest request{.context = &part_context, .anchor = 3};
  DraftProposal actual = ProposeOne(part_pass, request);
  EXPECT_EQ(expected.rows, actual.rows);
  request.noise = Noise;
  request.temperature = 1.0;
  const DraftProposal noisy = ProposeOne(part_pass, request);
  actual.ids.insert(actual.ids.end(), noisy.ids.begin(), noisy.ids.end());
  for (const int32_t id : actual.ids) {
    EXPECT_TRUE((id >= 256 && id < 384) || (id >= 640 && id < 896)) << id;
  }
}

TEST(DraftPass, ASlidingContextStaysSmall) {
  const LoadedDrafter loaded = Load(kScribe);
  const Drafter& drafter = *loaded.drafter;
  DraftPass pass = *DraftPass::Create(drafter);
  const std::vector<float> taps = RandomTaps(drafter, 1000, 10);
  DraftContext whole = ContextOf(pass, drafter, taps, 1000);
  DraftContext rowwise = ContextOf(pass, drafter, taps, 1);
  ExpectSame(ProposeOne(pass, {.context = &whole, .anchor = 1}),
             ProposeOne(pass, {.context = &rowwise, .anchor = 1}));
  // 127 rows lie in three pages of 64 at most; a page holds 3 layers of 2 x 256 floats a row.
  const size_t page = 64 * 3 * 2 * 256 * sizeof(float);
  const size_t pending = 128 * 768 * sizeof(float);
  EXPECT_LE(whole.bytes(), 3 * page + pending);
  ASSERT_TRUE(AppendTaps(pass, drafter, rowwise, RandomTaps(drafter, 1, 11)).has_value());
  EXPECT_LE(rowwise.bytes(), 3 * page + pending);
  // A full layer keeps everything.
  const LoadedDrafter prism = Load(kPrism);
  DraftPass prism_pass = *DraftPass::Create(*prism.drafter);
  DraftContext kept = ContextOf(prism_pass, *prism.drafter, RandomTaps(*prism.drafter, 1000, 10));
  ProposeOne(prism_pass, {.context = &kept, .anchor = 1});
  EXPECT_GE(kept.bytes(), 1000 * 3 * 2 * 256 * sizeof(float));
}

TEST(DraftPass, ATieOfCandidatesGoesToTheFirst) {
  // Equal codebook rows and a head of equal columns would tie everywhere; here noise makes the tie:
  // it cancels the scores exactly, so that every candidate stands at the same key.
  const LoadedDrafter loaded = Load(kScribe);
  DraftPass pass = *DraftPass::Create(*loaded.drafter);
  DraftContext context = ContextOf(pass, *loaded.drafter, RandomTaps(*loaded.drafter, 30, 12));
  std::vector<int32_t> offered;
  DraftRequest request{.context = &context, .anchor = 4, .temperature = 1e300};
  request.noise = [&](int64_t position, int32_t id) {
    if (position == 31) offered.push_back(id);
    return 0.0;
  };
  const DraftProposal proposal = ProposeOne(pass, request);
  // At this temperature each score is far below the last bit of 1, the noise's value.
  request.noise = [](int64_t, int32_t) { return 1.0; };
  const DraftProposal tied = ProposeOne(pass, request);
  ASSERT_EQ(offered.size(), 16u);
  EXPECT_EQ(tied.ids[0], offered[0]);
}

TEST(DraftPass, FaultsOfARequestAreNamed) {
  const LoadedDrafter loaded = Load(kScribe);
  const Drafter& drafter = *loaded.drafter;
  DraftPass pass = *DraftPass::Create(drafter);
  EXPECT_EQ(pass.Propose({}).error().code, Code::kOutOfRange);
  DraftContext context = ContextOf(pass, drafter, RandomTaps(drafter, 3, 13));
  for (const int32_t anchor : {-1, 4096}) {
    const DraftRequest request{.context = &context, .anchor = anchor};
    EXPECT_EQ(pass.Propose(std::span(&request, 1)).error().code, Code::kOutOfRange);
  }
  const ConstRows too_many{nullptr, int64_t{1} << 20, drafter.tap_width()};
  EXPECT_EQ(pass.Append(context, too_many).error().code, Code::kOutOfRange);
  EXPECT_EQ(context.length(), 3);
  std::vector<float> taps = RandomTaps(drafter, 2, 14);
  taps[5] = std::numeric_limits<float>::quiet_NaN();
  DraftContext poisoned = ContextOf(pass, drafter, taps);
  const DraftRequest request{.context = &poisoned, .anchor = 1};
  const auto lost = pass.Propose(std::span(&request, 1));
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Code::kOutOfRange) << lost.error().ToString();
}

}  // namespace
}  // namespace hallmark
