// SPDX-License-Identifier: Apache-2.0
// Scalar definition of the gated delta rule (Gated DeltaNet), one token of one value head:
//   S <- decay S;  m = S^T k;  delta = beta (v - m);  S <- S + k delta^T;  o = S^T q.
// The read-back uses the decayed state and the output the updated one. Sums over the key dimension
// are BlockedSum; products are rounded before they are added.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_REF_DELTA_NET_H_
#define HALLMARK_ENGINE_BACKEND_CPU_REF_DELTA_NET_H_

#include <cstdint>

namespace hallmark {

// The per-token scalars of one value head.
struct DeltaNetGate {
  float decay;  // exp(-exp(a_log) * softplus(a + dt_bias)), in (0, 1]
  float beta;   // sigmoid(b)
};
DeltaNetGate RefDeltaNetGate(float a, float b, float a_log, float dt_bias);

// out = x * (1 / sqrt(sum(x^2) + 1e-6)) * scale: the L2 norm (a sum, not a mean).
void RefL2Norm(const float* x, int64_t count, float scale, float* out);

// state [key_dim, value_dim] in place; q and k are normalised, q scaled; o [value_dim].
void RefDeltaNetStep(const float* q, const float* k, const float* v, DeltaNetGate gate,
                     int64_t key_dim, int64_t value_dim, float* state, float* o);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_REF_DELTA_NET_H_
