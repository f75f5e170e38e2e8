// SPDX-License-Identifier: Apache-2.0
// Clause model-golden: logits, hidden rows and greedy choices against HF transformers in fp32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "conformance/harness/paths.h"
#include "conformance/harness/tolerances.h"
#include "conformance/model/golden.h"
#include "conformance/model/loaded_model.h"

namespace hallmark {
namespace {

struct Totals {
  double worst_rms = 0;
  double worst_kl = 0;  // the largest mean over a run's rows
  double worst_hidden_rms = 0;
  size_t rows = 0;
  size_t hidden_rows = 0;
  size_t argmax_compared = 0;
  size_t argmax_differ = 0;
};

// Runs every golden run of a model, MODEL being "scribe" or "prism" in the register's entries.
Totals RunGolden(const std::string& name, const std::string& model, KvType kv) {
  const std::string cache = kv == KvType::kBf16 ? "bf16" : "fp8";
  const auto allowed = [&](const std::string& what) {
    return Tolerance(model + "-" + what + "-" + cache);
  };
  const std::string directory = GoldenPath("models/" + name);
  Totals totals;
  auto loaded = LoadModel(directory, {});
  EXPECT_TRUE(loaded.has_value()) << loaded.error().ToString();
  auto runs = ReadGolden(directory);
  EXPECT_TRUE(runs.has_value()) << runs.error().ToString();
  if (!loaded || !runs) return totals;
  const double margin = allowed("logits-margin");
  for (const GoldenRun& run : *runs) {
    auto comparison = CompareGolden(*loaded->model, run, kv, margin);
    EXPECT_TRUE(comparison.has_value()) << comparison.error().ToString();
    if (!comparison) continue;
    std::printf("%s %s: logits %s", name.c_str(), run.name.c_str(),
                comparison->logits.ToString().c_str());
    EXPECT_TRUE(comparison->logits.Within(allowed("logits-rms"), allowed("logits-kl")));
    totals.worst_rms = std::max(totals.worst_rms, comparison->logits.worst_rms);
    totals.worst_kl = std::max(totals.worst_kl, comparison->logits.mean_kl);
    totals.rows += comparison->logits.rows;
    for (size_t i = 0; i < comparison->hidden.size(); ++i) {
      const Drift& hidden = comparison->hidden[i];
      const int tap = run.hidden[i].tap;
      std::printf("; tap %d rms %.2e", tap, hidden.worst_rms);
      EXPECT_EQ(hidden.non_finite, 0u);
      EXPECT_LE(hidden.worst_rms, tap == 0 ? 0.0 : allowed("hidden-rms"));
      totals.worst_hidden_rms = std::max(totals.worst_hidden_rms, hidden.worst_rms);
      totals.hidden_rows += hidden.rows;
    }
    if (comparison->has_argmax) {
      std::printf("; argmax %s", comparison->argmax.ToString().c_str());
      EXPECT_TRUE(comparison->argmax.Passed());
      totals.argmax_compared += comparison->argmax.compared;
      totals.argmax_differ += comparison->argmax.differ;
    }
    std::printf("\n");
  }
  std::printf(
      "%s %s: worst rms %.3e, worst mean KL %.3e, worst hidden rms %.3e, %zu of %zu "
      "argmax equal, %zu rows\n",
      name.c_str(), cache.c_str(), totals.worst_rms, totals.worst_kl, totals.worst_hidden_rms,
      totals.argmax_compared - totals.argmax_differ, totals.argmax_compared, totals.rows);
  return totals;
}

TEST(ModelGolden, ScribeBf16) {
  const Totals totals = RunGolden("scribe-11m-exl3", "scribe", KvType::kBf16);
  EXPECT_EQ(totals.rows, 101u + 113u + 3 * 8u + 13u);
  EXPECT_EQ(totals.hidden_rows, 5u * 9u);
  EXPECT_EQ(totals.argmax_compared, 467u);  // of 480 steps, those with a margin above 0.1
}

TEST(ModelGolden, PrismBf16) {
  const Totals totals = RunGolden("prism-exl3", "prism", KvType::kBf16);
  EXPECT_EQ(totals.rows, 31u);
  EXPECT_EQ(totals.hidden_rows, 62u);
  EXPECT_GT(totals.argmax_compared, 500u);
}

TEST(ModelGolden, ScribeFp8) {
  const Totals totals = RunGolden("scribe-11m-exl3", "scribe", KvType::kFp8E4m3);
  EXPECT_EQ(totals.rows, 101u + 113u + 3 * 8u + 13u);
  EXPECT_GT(totals.argmax_compared, 300u);
}

TEST(ModelGolden, PrismFp8) {
  const Totals totals = RunGolden("prism-exl3", "prism", KvType::kFp8E4m3);
  EXPECT_EQ(totals.rows, 31u);
  EXPECT_GT(totals.argmax_compared, 100u);
}

}  // namespace
}  // namespace hallmark
