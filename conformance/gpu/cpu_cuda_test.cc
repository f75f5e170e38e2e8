// SPDX-License-Identifier: Apache-2.0
// The GPU's arithmetic beside the CPU's: hidden rows after every layer and logits of the golden
// models' recorded ids within the tolerance register, the embedding's rows to the bit, and the same
// choices wherever the CPU's margin is above the registered one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/gpu/gpu_session.h"
#include "conformance/harness/comparators.h"
#include "conformance/harness/tolerances.h"
#include "conformance/model/golden.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"

namespace hallmark {
namespace {

// Logits of every id, and the residual rows before the first layer and after each.
Result<ForwardOutput> RunWhole(const Session& session, std::span<const int32_t> ids) {
  const Model& model = session.model();
  ForwardRequest request{.logits = LogitRows::kAll};
  request.taps.resize(model.layers.size() + 1);
  std::iota(request.taps.begin(), request.taps.end(), 0);
  ForwardPass pass = TRY(ForwardPass::Create(model));
  Sequence sequence = TRY(Sequence::Create(*model.backend, model.config, session.options().kv));
  return pass.Run(sequence, ids, request);
}

// Difference of the two highest values.
float MarginOf(std::span<const float> row) {
  const size_t best = Argmax(row);
  float second = -INFINITY;
  for (size_t i = 0; i < row.size(); ++i) {
    if (i != best) second = std::max(second, row[i]);
  }
  return row[best] - second;
}

class CpuCuda : public testing::TestWithParam<std::tuple<const char*, KvType>> {
 protected:
  void SetUp() override {
    const std::string directory = GoldenModelPath(model());
    auto cpu = Session::Open(directory, {.kv = kv()});
    ASSERT_TRUE(cpu.has_value()) << cpu.error().ToString();
    cpu_ = *std::move(cpu);
    auto gpu = OpenOnDevice(directory, {.kv = kv()});
    ASSERT_TRUE(gpu.has_value()) << gpu.error().ToString();
    gpu_ = *std::move(gpu);
    auto runs = ReadGolden(directory);
    ASSERT_TRUE(runs.has_value()) << runs.error().ToString();
    runs_ = *std::move(runs);
    ASSERT_FALSE(runs_.empty());
  }

  std::string model() const { return std::get<0>(GetParam()); }
  KvType kv() const { return std::get<1>(GetParam()); }
  double Allowed(const std::string& what) const {
    return Tolerance("cuda-" + what + "-" + KvName(kv()));
  }
  size_t vocab() const { return static_cast<size_t>(cpu_->vocab_size()); }

  std::unique_ptr<Session> cpu_, gpu_;
  std::vector<GoldenRun> runs_;
};

TEST_P(CpuCuda, HiddenRowsAndLogitsAreWithinTheRegister) {
  double worst_hidden = 0;
  double worst_logits = 0;
  double worst_kl = 0;
  size_t layers = 0;
  for (const GoldenRun& run : runs_) {
    auto cpu = RunWhole(*cpu_, run.ids);
    auto gpu = RunWhole(*gpu_, run.ids);
    ASSERT_TRUE(cpu.has_value()) << cpu.error().ToString();
    ASSERT_TRUE(gpu.has_value()) << gpu.error().ToString();
    ASSERT_EQ(cpu->taps.size(), gpu->taps.size());
    const BitComparison embedded = CompareBits<float>(cpu->taps[0], gpu->taps[0]);
    EXPECT_TRUE(embedded.Passed()) << run.name << ": embedding: " << embedded.ToString();
    const size_t hidden = static_cast<size_t>(cpu_->model().config.hidden);
    for (size_t tap = 1; tap < cpu->taps.size(); ++tap) {
      const Drift drift = MeasureDrift(cpu->taps[tap], gpu->taps[tap], hidden);
      EXPECT_EQ(drift.rows, run.ids.size());
      EXPECT_EQ(drift.non_finite, 0u);
      EXPECT_LE(drift.worst_rms, Allowed("hidden-rms")) << run.name << ": tap " << tap;
      worst_hidden = std::max(worst_hidden, drift.worst_rms);
      ++layers;
    }
    const Drift drift = MeasureDrift(cpu->logits, gpu->logits, vocab());
    EXPECT_EQ(drift.rows, run.ids.size());
    EXPECT_TRUE(drift.Within(Allowed("logits-rms"), Allowed("logits-kl")))
        << run.name << ": " << drift.ToString();
    worst_logits = std::max(worst_logits, drift.worst_rms);
    worst_kl = std::max(worst_kl, drift.mean_kl);

    std::vector<int32_t> ids;
    std::vector<float> margins;
    for (size_t row = 0; row < run.ids.size(); ++row) {
      const auto logits = std::span(cpu->logits).subspan(row * vocab(), vocab());
      ids.push_back(static_cast<int32_t>(Argmax(logits)));
      margins.push_back(MarginOf(logits));
    }
    const ArgmaxAgreement agreement =
        CompareArgmax(ids, margins, gpu->logits, vocab(), Allowed("logits-margin"));
    EXPECT_TRUE(agreement.Passed()) << run.name << ": " << agreement.ToString();
    EXPECT_GT(2 * agreement.compared, run.ids.size()) << run.name;
  }
  EXPECT_EQ(layers, runs_.size() * cpu_->model().layers.size());
  std::printf("%s %s: worst hidden rms %.3e, worst logits rms %.3e, worst mean KL %.3e\n",
              model().c_str(), KvName(kv()).c_str(), worst_hidden, worst_logits, worst_kl);
}

// Greedy replies are the same ids up to the first choice that the CPU itself finds close.
TEST_P(CpuCuda, GreedyRepliesAgreeWhereTheMarginAllows) {
  constexpr size_t kPrompt = 48;
  constexpr size_t kPrompts = 8;  // of one recorded run
  constexpr int64_t kTokens = 32;
  size_t compared = 0;
  for (const GoldenRun& run : runs_) {
    for (size_t at = 0; at + kPrompt <= std::min(run.ids.size(), kPrompts * kPrompt);
         at += kPrompt) {
      const auto prompt = std::span(run.ids).subspan(at, kPrompt);
      GenerateRequest request{
          .prompt = {prompt.begin(), prompt.end()}, .max_tokens = kTokens, .ignore_stop = true};
      const auto gpu = gpu_->Generate(request);
      std::vector<float> margins;
      request.on_logits = [&](int64_t, std::span<const float> logits) {
        margins.push_back(MarginOf(logits));
      };
      const auto cpu = cpu_->Generate(request);
      ASSERT_TRUE(cpu.has_value()) << cpu.error().ToString();
      ASSERT_TRUE(gpu.has_value()) << gpu.error().ToString();
      ASSERT_EQ(cpu->ids.size(), margins.size());
      ASSERT_EQ(gpu->ids.size(), margins.size());
      for (size_t i = 0; i < margins.size() && margins[i] > Allowed("logits-margin"); ++i) {
        EXPECT_EQ(gpu->ids[i], cpu->ids[i]) << run.name << " from " << at << ": id " << i;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 16u);
  std::printf("%s %s: %zu greedy ids compared\n", model().c_str(), KvName(kv()).c_str(), compared);
}

INSTANTIATE_TEST_SUITE_P(Golden, CpuCuda,
                         testing::Combine(testing::Values(kScribe, kPrism),
                                          testing::Values(KvType::kBf16, KvType::kFp8E4m3)),
                         [](const auto& info) {
                           const std::string name = std::get<0>(info.param);
                           return name.substr(0, name.find('-')) + "_" +
                                  KvName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace hallmark
