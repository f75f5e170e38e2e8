// SPDX-License-Identifier: Apache-2.0
// The inner loops of attention and DeltaNet as a table, one table a tier. Same arguments and same
// bits as the scalar definitions in ref/, which are the scalar tier's table; the wide ones differ
// only in how many columns go at once.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_SIMD_MIXERS_H_
#define HALLMARK_ENGINE_BACKEND_CPU_SIMD_MIXERS_H_

#include <cstdint>

#include "engine/backend/cpu/ref/attention.h"
#include "engine/backend/cpu/ref/delta_net.h"

namespace hallmark {

struct MixerLoops {
  decltype(&RefDeltaNetStep) delta_net_step;
  decltype(&RefAttentionTile) attention_tile;
};

// key_dim, value_dim and head_dim are multiples of 128 for the wide tables, which exist on x86-64
// only; the scalar table takes any.
inline constexpr MixerLoops kScalarMixerLoops = {&RefDeltaNetStep, &RefAttentionTile};
const MixerLoops& Avx2MixerLoops();
const MixerLoops& Avx512MixerLoops();

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_SIMD_MIXERS_H_
