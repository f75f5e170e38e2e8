// SPDX-License-Identifier: Apache-2.0
// Clauses row-invariance and chunked-equals-whole on the whole model: how many rows share a call,
// how a prompt is cut, which tier and how many threads run change no bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/harness/comparators.h"
#include "conformance/harness/paths.h"
#include "conformance/harness/sanitizer.h"
#include "conformance/model/golden.h"
#include "conformance/model/loaded_model.h"
#include "engine/model/forward.h"

namespace hallmark {
namespace {

std::vector<int32_t> LongIds() {
  auto runs = ReadGolden(GoldenPath("models/scribe-11m-exl3"));
  EXPECT_TRUE(runs.has_value());
  for (const GoldenRun& run : *runs) {
    if (run.name == "long") return run.ids;
  }
  return {};
}

// How many rows share a call: every count that a decode round can have, then counts of prompts up
// to the most that one pass takes. The scalar tier has no tiles, and sanitizers look for memory
// errors at a tenth of the speed: both see the counts around a tile's edges alone.
std::vector<size_t> SharedRowCounts(CpuTier tier) {
  std::vector<size_t> counts;
  const bool every = tier != CpuTier::kScalar && !kAddressSanitizer;
  for (size_t m = 1; m <= 128; ++m) {
    if (every || m <= 17 || m % 32 <= 1 || m % 32 == 31) counts.push_back(m);
  }
  counts.push_back(129);
  if (every) counts.insert(counts.end(), {513, static_cast<size_t>(ForwardPass::kMaxRows)});
  return counts;
}

struct Trace {
  std::vector<float> logits;
  std::vector<float> last_hidden;
  std::string digest;
};

// Feeds `ids` in pieces of `chunk` rows to a fresh sequence.
Trace Feed(const LoadedModel& loaded, KvType kv, std::span<const int32_t> ids, int64_t chunk,
           LogitRows rows = LogitRows::kAll) {
  const Model& model = *loaded.model;
  auto pass = ForwardPass::Create(model);
  auto sequence = Sequence::Create(*loaded.backend, model.config, kv);
  EXPECT_TRUE(pass.has_value() && sequence.has_value());
  Trace trace;
  const ForwardRequest request{.logits = rows, .taps = {static_cast<int>(model.layers.size())}};
  for (size_t done = 0; done < ids.size(); done += static_cast<size_t>(chunk)) {
    const auto piece = ids.subspan(done, std::min(static_cast<size_t>(chunk), ids.size() - done));
    auto output = pass->Run(*sequence, piece, request);
    EXPECT_TRUE(output.has_value()) << output.error().ToString();
    if (!output) return trace;
    trace.logits.insert(trace.logits.end(), output->logits.begin(), output->logits.end());
    trace.last_hidden.insert(trace.last_hidden.end(), output->taps[0].begin(),
                             output->taps[0].end());
  }
  trace.digest = *sequence->StateDigest();
  return trace;
}

class EveryTierAndCache : public testing::TestWithParam<std::tuple<CpuTier, KvType>> {
 protected:
  CpuTier tier() const { return std::get<0>(GetParam()); }
  KvType kv() const { return std::get<1>(GetParam()); }
  LoadedModel Load(const std::string& name, int threads = 1) const {
    auto loaded = LoadModel(GoldenPath("models/" + name), {.threads = threads, .tier = tier()});
    EXPECT_TRUE(loaded.has_value()) << loaded.error().ToString();
    return std::move(*loaded);
  }
};

// Rows 1 .. m in one call equal the same rows one at a time.
TEST_P(EveryTierAndCache, RowsThatShareACallEqualTheRowAlone) {
  const LoadedModel loaded = Load("scribe-11m-exl3");
  const std::vector<size_t> counts = SharedRowCounts(tier());
  const std::vector<int32_t> text = LongIds();
  ASSERT_FALSE(text.empty());
  std::vector<int32_t> ids(counts.back());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = text[i % text.size()];
  const int64_t width = loaded.model->config.hidden;
  const Trace alone = Feed(loaded, kv(), ids, 1, LogitRows::kNone);
  ASSERT_EQ(alone.last_hidden.size(), ids.size() * width);
  for (const size_t m : counts) {
    const auto prefix = std::span(ids).first(m);
    const Trace together = Feed(loaded, kv(), prefix, static_cast<int64_t>(m), LogitRows::kNone);
    const BitComparison comparison =
        CompareBits<float>(std::span(alone.last_hidden).first(m * width), together.last_hidden);
    ASSERT_TRUE(comparison.Passed()) << m << " rows: " << comparison.ToString();
    ASSERT_EQ(comparison.compared, m * width);
  }
}

TEST_P(EveryTierAndCache, CutsOfA200TokenPromptEqualTheWhole) {
  const LoadedModel loaded = Load("scribe-11m-exl3");
  const std::vector<int32_t> ids = LongIds();
  ASSERT_EQ(ids.size(), 200u);
  const Trace whole = Feed(loaded, kv(), ids, 200);
  std::set<int64_t> cuts = {1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 150, 199};
  for (const int64_t cut : cuts) {
    const Trace cut_up = Feed(loaded, kv(), ids, cut);
    const BitComparison comparison = CompareBits<float>(whole.logits, cut_up.logits);
    EXPECT_TRUE(comparison.Passed()) << "pieces of " << cut << ": " << comparison.ToString();
    EXPECT_EQ(comparison.compared, 200u * 4096u);
    EXPECT_EQ(cut_up.digest, whole.digest) << "pieces of " << cut;
  }
  EXPECT_EQ(cuts.size(), 17u);
}

// Past a 512-key chunk and with GQA, three value heads a key head and padded sizes.
TEST_P(EveryTierAndCache, CutsAcrossAKeyChunkEqualTheWholeOnPrism) {
  const LoadedModel loaded = Load("prism-exl3");
  auto runs = ReadGolden(GoldenPath("models/prism-exl3"));
  ASSERT_TRUE(runs.has_value());
  std::vector<int32_t> ids = (*runs)[0].ids;
  ids.resize(tier() == CpuTier::kScalar ? 150 : 600);
  const Trace whole = Feed(loaded, kv(), ids, static_cast<int64_t>(ids.size()), LogitRows::kLast);
  for (const int64_t cut : {13, 67, 128}) {
    const Trace cut_up = Feed(loaded, kv(), ids, cut, LogitRows::kLast);
    EXPECT_TRUE(CompareBits<float>(whole.last_hidden, cut_up.last_hidden).Passed()) << cut;
    EXPECT_EQ(cut_up.digest, whole.digest) << cut;
  }
}

TEST_P(EveryTierAndCache, ThreadsChangeNoBit) {
  std::vector<int32_t> ids = LongIds();
  ids.resize(40);
  std::set<std::string> digests;
  for (const int threads : {1, 2, 5}) {
    digests.insert(Feed(Load("scribe-11m-exl3", threads), kv(), ids, 17).digest);
  }
  EXPECT_EQ(digests.size(), 1u);
}

std::string ParamName(const testing::TestParamInfo<std::tuple<CpuTier, KvType>>& info) {
  return std::string(CpuTierName(std::get<0>(info.param))) +
         (std::get<1>(info.param) == KvType::kBf16 ? "_bf16" : "_fp8");
}
INSTANTIATE_TEST_SUITE_P(RowInvariance, EveryTierAndCache,
                         testing::Combine(testing::ValuesIn(SupportedCpuTiers()),
                                          testing::Values(KvType::kBf16, KvType::kFp8E4m3)),
                         ParamName);

TEST(RowInvariance, AllTiersGiveOneDigestAndTheCachesDiffer) {
  std::vector<int32_t> ids = LongIds();
  ids.resize(70);
  std::set<std::string> bf16, fp8;
  for (const CpuTier tier : SupportedCpuTiers()) {
    auto loaded = LoadModel(GoldenPath("models/scribe-11m-exl3"), {.tier = tier});
    ASSERT_TRUE(loaded.has_value());
    bf16.insert(Feed(*loaded, KvType::kBf16, ids, 33).digest);
    fp8.insert(Feed(*loaded, KvType::kFp8E4m3, ids, 33).digest);
  }
  EXPECT_EQ(bf16.size(), 1u);
  EXPECT_EQ(fp8.size(), 1u);
  EXPECT_NE(*bf16.begin(), *fp8.begin());
}

}  // namespace
}  // namespace hallmark
