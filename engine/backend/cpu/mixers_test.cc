// SPDX-License-Identifier: Apache-2.0
// The scalar definitions against plainer mathematics in fp64; the wide loops against them by bits
// are in mixers_prop.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "conformance/harness/tolerances.h"
#include "engine/backend/cpu/ref/attention.h"
#include "engine/backend/cpu/ref/delta_net.h"
#include "engine/backend/cpu/ref/norm.h"
#include "engine/backend/cpu/ref/pointwise.h"
#include "engine/base/blocked_sum.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

std::vector<float> RandomVector(SplitMix64& random, int64_t count, float scale = 1.0f) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = random.NextNormal() * scale;
  return values;
}

TEST(BlockedSum, OrderIsSixteenPartialsFoldedPairwise) {
  // 2^24 swallows a one added to it: which ones survive shows the order.
  std::vector<float> terms(256, 0.0f);
  terms[0] = 0x1p24f;
  terms[8] = 1.0f;   // folded onto partial 0 first: lost
  terms[16] = 1.0f;  // same partial: lost
  terms[1] = 1.0f;   // 1 and 9 meet before they meet 0: 2 survives
  terms[9] = 1.0f;
  terms[128] = 2.0f;  // next block
  EXPECT_EQ(BlockedSum(256, [&](int64_t i) { return terms[i]; }), 0x1p24f + 4.0f);
}

TEST(RmsNorm, ZeroWeightIsThePlainNormalisedValue) {
  const std::vector<float> x = {3.0f, 4.0f};
  const std::vector<float> weight = {0.0f, 0.0f};
  float out[2];
  RefRmsNorm(x.data(), weight.data(), 2, 0.0f, out);
  EXPECT_FLOAT_EQ(out[0], 3.0f / std::sqrt(12.5f));
  EXPECT_FLOAT_EQ(out[1], 4.0f / std::sqrt(12.5f));
}

TEST(GatedNorm, WeightIsPlainAndTheGateComesLast) {
  const std::vector<float> o = {3.0f, 4.0f};
  const std::vector<float> z = {1.0f, -1.0f};
  const std::vector<float> weight = {1.0f, 2.0f};
  float out[2];
  RefGatedNorm(o.data(), z.data(), weight.data(), 2, 0.0f, out);
  const float silu_one = 1.0f / (1.0f + std::exp(-1.0f));
  EXPECT_FLOAT_EQ(out[0], 3.0f / std::sqrt(12.5f) * silu_one);
  EXPECT_FLOAT_EQ(out[1], 4.0f / std::sqrt(12.5f) * 2.0f * (-1.0f + silu_one));
}

TEST(Rope, TurnsHalfSplitPairsAndLeavesTheRest) {
  const std::vector<float> inv_freq = {1.0f, 0.5f};
  std::vector<float> head = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
  RefRope(inv_freq.data(), 4, 3, head.data());
  EXPECT_FLOAT_EQ(head[0], std::cos(3.0f) - 3.0f * std::sin(3.0f));
  EXPECT_FLOAT_EQ(head[2], 3.0f * std::cos(3.0f) + std::sin(3.0f));
  EXPECT_FLOAT_EQ(head[1], 2.0f * std::cos(1.5f) - 4.0f * std::sin(1.5f));
  EXPECT_EQ(head[4], 5.0f);
  EXPECT_EQ(head[5], 6.0f);
}

TEST(ConvSilu, TheLastTapIsTheRowItselfAndTheWindowFollows) {
  // One channel, weights 1, 10, 100, 1000: the sum spells the last four inputs.
  const std::vector<float> weight = {1.0f, 10.0f, 100.0f, 1000.0f};
  std::vector<float> window = {1.0f, 2.0f, 3.0f};
  const std::vector<float> x = {4.0f, 5.0f};
  float out[2];
  RefConvSilu(x.data(), 2, 1, weight.data(), 4, window.data(), window.data(), out);
  EXPECT_FLOAT_EQ(out[0], 4321.0f);  // silu is the identity here
  EXPECT_FLOAT_EQ(out[1], 5432.0f);
  EXPECT_EQ(window, (std::vector<float>{3.0f, 4.0f, 5.0f}));
}

// The chunked form of the rule (see docs/contract), in fp64, from a given state.
struct ChunkedResult {
  std::vector<double> outputs;
  std::vector<double> state;
};
ChunkedResult ChunkedRule(const std::vector<std::vector<float>>& q,
                          const std::vector<std::vector<float>>& k,
                          const std::vector<std::vector<float>>& v,
                          const std::vector<DeltaNetGate>& gates, std::vector<double> state, int dk,
                          int dv) {
  const int count = static_cast<int>(q.size());
  std::vector<double> log_decay(count);
  double total = 0;
  for (int i = 0; i < count; ++i) log_decay[i] = total += std::log(double{gates[i].decay});
  auto dot = [dk](const std::vector<float>& x, const std::vector<float>& y) {
    double sum = 0;
    for (int d = 0; d < dk; ++d) sum += double{x[d]} * y[d];
    return sum;
  };
  // Forward substitution of (I + A) N = diag(beta) (V - diag(e^G) K S).
  std::vector<std::vector<double>> n(count, std::vector<double>(dv));
  for (int i = 0; i < count; ++i) {
    for (int c = 0; c < dv; ++c) {
      double read = 0;
      for (int d = 0; d < dk; ++d) read += double{k[i][d]} * state[d * dv + c];
      double value = gates[i].beta * (v[i][c] - std::exp(log_decay[i]) * read);
      for (int j = 0; j < i; ++j) {
        value -= gates[i].beta * dot(k[i], k[j]) * std::exp(log_decay[i] - log_decay[j]) * n[j][c];
      }
      n[i][c] = value;
    }
  }
  ChunkedResult result;
  for (int i = 0; i < count; ++i) {
    for (int c = 0; c < dv; ++c) {
      double out = 0;
      for (int d = 0; d < dk; ++d) out += double{q[i][d]} * state[d * dv + c];
      out *= std::exp(log_decay[i]);
      for (int j = 0; j <= i; ++j) {
        out += dot(q[i], k[j]) * std::exp(log_decay[i] - log_decay[j]) * n[j][c];
      }
      result.outputs.push_back(out);
    }
  }
  result.state.resize(state.size());
  for (int d = 0; d < dk; ++d) {
    for (int c = 0; c < dv; ++c) {
      double s = std::exp(total) * state[d * dv + c];
      for (int j = 0; j < count; ++j) s += std::exp(total - log_decay[j]) * k[j][d] * n[j][c];
      result.state[d * dv + c] = s;
    }
  }
  return result;
}

TEST(DeltaNetStep, AgreesWithTheChunkedForm) {
  constexpr int kDim = 128;
  constexpr int kTokens = 24;
  SplitMix64 random(7);
  std::vector<float> state = RandomVector(random, kDim * kDim, 0.1f);
  const std::vector<double> start(state.begin(), state.end());
  std::vector<std::vector<float>> q(kTokens), k(kTokens), v(kTokens);
  std::vector<DeltaNetGate> gates(kTokens);
  for (int t = 0; t < kTokens; ++t) {
    q[t] = RandomVector(random, kDim);
    k[t] = RandomVector(random, kDim);
    v[t] = RandomVector(random, kDim);
    RefL2Norm(q[t].data(), kDim, 0.08838835f, q[t].data());
    RefL2Norm(k[t].data(), kDim, 1.0f, k[t].data());
    gates[t] = RefDeltaNetGate(random.NextNormal(), random.NextNormal(), random.NextNormal(), 0.5f);
  }
  const ChunkedResult truth = ChunkedRule(q, k, v, gates, start, kDim, kDim);
  double worst = 0;
  std::vector<float> o(kDim);
  for (int t = 0; t < kTokens; ++t) {
    RefDeltaNetStep(q[t].data(), k[t].data(), v[t].data(), gates[t], kDim, kDim, state.data(),
                    o.data());
    for (int c = 0; c < kDim; ++c) {
      worst = std::max(worst, std::abs(o[c] - truth.outputs[t * kDim + c]));
    }
  }
  for (size_t i = 0; i < state.size(); ++i) {
    worst = std::max(worst, std::abs(state[i] - truth.state[i]));
  }
  EXPECT_LT(worst, Tolerance("delta-net-chunked-absolute"));
}

TEST(L2Norm, IsASumNotAMean) {
  // 64 ones: a sum of 64, in which 1e-6 is lost, so each becomes 1/8 exactly; by a mean, nearly 1.
  std::vector<float> x(128, 0.0f);
  for (size_t i = 0; i < x.size(); i += 2) x[i] = 1.0f;
  RefL2Norm(x.data(), 128, 1.0f, x.data());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i], i % 2 == 0 ? 0.125f : 0.0f) << i;
}

TEST(AttentionTile, AgreesWithPlainSoftmaxAcrossChunks) {
  constexpr int64_t kDim = 128;
  constexpr int64_t kKeys = 600;  // more than one 512-key chunk
  SplitMix64 random(11);
  const std::vector<float> query = RandomVector(random, kDim);
  const std::vector<float> keys = RandomVector(random, kKeys * kDim);
  const std::vector<float> values = RandomVector(random, kKeys * kDim);
  const float scale = 1.0f / std::sqrt(static_cast<float>(kDim));
  std::vector<float> total_values(kDim), chunk_values(kDim);
  SoftmaxState total{0, 0, total_values.data()};
  SoftmaxState chunk{0, 0, chunk_values.data()};
  ResetSoftmax(total, kDim);
  for (int64_t start = 0; start < kKeys; start += kAttentionChunk) {
    ResetSoftmax(chunk, kDim);
    const int64_t end = std::min(kKeys, start + kAttentionChunk);
    for (int64_t t = start; t < end; t += kAttentionTile) {
      RefAttentionTile(query.data(), keys.data() + t * kDim, values.data() + t * kDim,
                       std::min(kAttentionTile, end - t), kDim, scale, chunk);
    }
    RefAttentionMerge(chunk, kDim, total);
  }
  std::vector<double> truth(kDim, 0.0);
  double mass = 0;
  for (int64_t t = 0; t < kKeys; ++t) {
    double score = 0;
    for (int64_t d = 0; d < kDim; ++d) score += double{query[d]} * keys[t * kDim + d];
    const double weight = std::exp(score * scale);
    mass += weight;
    for (int64_t d = 0; d < kDim; ++d) truth[d] += weight * values[t * kDim + d];
  }
  for (int64_t d = 0; d < kDim; ++d) {
    EXPECT_NEAR(total_values[d] / total.sum, truth[d] / mass, Tolerance("attention-tile-absolute"));
  }
}

}  // namespace
}  // namespace hallmark
