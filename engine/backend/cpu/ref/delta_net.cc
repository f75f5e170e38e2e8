// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/ref/delta_net.h"

#include <cmath>

#include "engine/base/blocked_sum.h"
#include "engine/base/elementary.h"

namespace hallmark {

DeltaNetGate RefDeltaNetGate(float a, float b, float a_log, float dt_bias) {
  const float g = -Exp(a_log) * Softplus(a + dt_bias);
  return {Exp(g), Sigmoid(b)};
}

void RefL2Norm(const float* x, int64_t count, float scale, float* out) {
  const float sum = BlockedSum(count, [x](int64_t i) { return x[i] * x[i]; });
  const float r = 1.0f / std::sqrt(sum + 1e-6f);
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] * r * scale;
}

void RefDeltaNetStep(const float* q, const float* k, const float* v, DeltaNetGate gate,
                     int64_t key_dim, int64_t value_dim, float* state, float* o) {
  for (int64_t i = 0; i < key_dim * value_dim; ++i) state[i] *= gate.decay;
  for (int64_t c = 0; c < value_dim; ++c) {
    const float m = BlockedSum(key_dim, [&](int64_t i) { return state[i * value_dim + c] * k[i]; });
    const float delta = gate.beta * (v[c] - m);
    for (int64_t i = 0; i < key_dim; ++i) state[i * value_dim + c] += k[i] * delta;
    o[c] = BlockedSum(key_dim, [&](int64_t i) { return state[i * value_dim + c] * q[i]; });
  }
}

}  // namespace hallmark
