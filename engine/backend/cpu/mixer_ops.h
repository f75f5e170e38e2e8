// SPDX-License-Identifier: Apache-2.0
// Attention over paged keys and the DeltaNet recurrence for the CPU backend: they cut the work into
// heads for the threads and feed the tier's inner loops. Shapes and rounding:
// engine/backend/backend.h and ref/. Implements clauses row-invariance and chunked-equals-whole.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_MIXER_OPS_H_
#define HALLMARK_ENGINE_BACKEND_CPU_MIXER_OPS_H_

#include "engine/backend/backend.h"
#include "engine/backend/cpu/parallel.h"
#include "engine/backend/cpu/simd/mixers.h"

namespace hallmark {

void CpuAttentionInputs(const AttentionGeometry& geometry, const AttentionWeights& weights,
                        int64_t position, ConstRows q_gate, ConstRows k, ConstRows v, Rows q,
                        const KvPages& kv, ThreadPool& pool);

void CpuAttention(const AttentionGeometry& geometry, int64_t position, ConstRows q,
                  ConstRows q_gate, const KvPages& kv, Rows out, const MixerLoops& loops,
                  ThreadPool& pool);

void CpuDeltaNet(const DeltaNetGeometry& geometry, const DeltaNetWeights& weights, ConstRows qkv,
                 ConstRows a, ConstRows b, const float* state_in, float* state_out, Rows out,
                 const MixerLoops& loops, ThreadPool& pool);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_MIXER_OPS_H_
