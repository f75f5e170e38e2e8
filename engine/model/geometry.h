// SPDX-License-Identifier: Apache-2.0
// The mixers' geometries as a model's config gives them.
#ifndef HALLMARK_ENGINE_MODEL_GEOMETRY_H_
#define HALLMARK_ENGINE_MODEL_GEOMETRY_H_

#include <vector>

#include "engine/backend/geometry.h"
#include "engine/format/model_config.h"

namespace hallmark {

AttentionGeometry AttentionGeometryOf(const ModelConfig& config);
DeltaNetGeometry DeltaNetGeometryOf(const ModelConfig& config);

// RoPE frequencies theta^(-2i / rotary_dim), i < rotary_dim / 2, computed in fp64 and rounded once.
std::vector<float> InverseFrequencies(double theta, int rotary_dim);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_MODEL_GEOMETRY_H_
