// SPDX-License-Identifier: Apache-2.0
// Clause: row-invariance
// Every tier's inner loops give the scalar definition's bits.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <vector>

#include "engine/backend/cpu/simd/mixers.h"
#include "engine/backend/cpu/tier.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

std::vector<float> RandomVector(SplitMix64& random, int64_t count, float scale = 1.0f) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = random.NextNormal() * scale;
  return values;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The wide tables that this machine can run.
std::vector<const MixerLoops*> WideLoops() {
  std::vector<const MixerLoops*> loops;
#if defined(__x86_64__)
  for (const CpuTier tier : SupportedCpuTiers()) {
    if (tier == CpuTier::kAvx2) loops.push_back(&Avx2MixerLoops());
    if (tier == CpuTier::kAvx512) loops.push_back(&Avx512MixerLoops());
  }
#endif
  return loops;
}

RC_GTEST_PROP(MixerLoops, DeltaNetStepHasTheScalarBits, (uint64_t seed)) {
  SplitMix64 random(seed);
  const int64_t key_dim = 128 * static_cast<int64_t>(1 + random.Below(2));
  const int64_t value_dim = 128 * static_cast<int64_t>(1 + random.Below(2));
  const auto q = RandomVector(random, key_dim, 0.1f);
  const auto k = RandomVector(random, key_dim, 0.1f);
  const auto v = RandomVector(random, value_dim);
  const auto start = RandomVector(random, key_dim * value_dim);
  const DeltaNetGate gate = RefDeltaNetGate(random.NextNormal(), random.NextNormal(),
                                            random.NextNormal(), random.NextNormal());
  std::vector<float> state = start;
  std::vector<float> o(static_cast<size_t>(value_dim));
  RefDeltaNetStep(q.data(), k.data(), v.data(), gate, key_dim, value_dim, state.data(), o.data());
  for (const MixerLoops* loops : WideLoops()) {
    std::vector<float> wide_state = start;
    std::vector<float> wide_o(static_cast<size_t>(value_dim), -1.0f);
    loops->delta_net_step(q.data(), k.data(), v.data(), gate, key_dim, value_dim, wide_state.data(),
                          wide_o.data());
    RC_ASSERT(SameBits(state, wide_state));
    RC_ASSERT(SameBits(o, wide_o));
  }
}

RC_GTEST_PROP(MixerLoops, AttentionTileHasTheScalarBits, (uint64_t seed)) {
  SplitMix64 random(seed);
  const int64_t dim = 128 * static_cast<int64_t>(1 + random.Below(2));
  const int64_t count = 1 + static_cast<int64_t>(random.Below(kAttentionTile));
  const auto query = RandomVector(random, dim);
  const auto keys = RandomVector(random, kAttentionTile * dim);
  const auto values = RandomVector(random, kAttentionTile * dim);
  const bool first = random.Below(2) == 0;
  auto run = [&](const MixerLoops& loops, std::vector<float>& chunk_values) {
    SplitMix64 start(seed + 1);
    chunk_values = RandomVector(start, dim);
    SoftmaxState chunk{0.25f, 3.0f, chunk_values.data()};
    if (first) ResetSoftmax(chunk, dim);
    loops.attention_tile(query.data(), keys.data(), values.data(), count, dim, 0.0625f, chunk);
    return std::vector<float>{chunk.max, chunk.sum};
  };
  std::vector<float> scalar_values;
  const auto scalar = run(kScalarMixerLoops, scalar_values);
  for (const MixerLoops* loops : WideLoops()) {
    std::vector<float> wide_values;
    const auto wide = run(*loops, wide_values);
    RC_ASSERT(SameBits(scalar, wide));
    RC_ASSERT(SameBits(scalar_values, wide_values));
  }
}

}  // namespace
}  // namespace hallmark
