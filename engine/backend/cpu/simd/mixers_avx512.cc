// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/simd/mixers.h"

#include "engine/base/elementary.h"

namespace hallmark {
namespace {

#include "engine/backend/cpu/simd/mixers.inl"

constexpr MixerLoops kLoops = {&DeltaNetStep, &AttentionTile};

}  // namespace

const MixerLoops& Avx512MixerLoops() { return kLoops; }

}  // namespace hallmark
