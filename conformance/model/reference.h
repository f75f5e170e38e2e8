// SPDX-License-Identifier: Apache-2.0
// A second, independent forward pass of dense qwen3_5 in fp64, with no rounding points, caches or
// blocking: plain loops over a whole sequence, for tiny models of plain (not EXL3) weights. It
// shares nothing with the engine but the weights' numbers. Not fast and not for real models.
#ifndef HALLMARK_CONFORMANCE_MODEL_REFERENCE_H_
#define HALLMARK_CONFORMANCE_MODEL_REFERENCE_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/format/model_config.h"

namespace hallmark {

// Weight values by tensor name without the model prefix, e.g. "layers.0.mlp.up_proj.weight" or
// "lm_head.weight"; linears [out, in].
using ReferenceWeights = std::map<std::string, std::vector<double>>;

// Logits [ids, vocab] of a fresh sequence.
std::vector<double> ReferenceLogits(const ModelConfig& config, const ReferenceWeights& weights,
                                    std::span<const int32_t> ids);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_MODEL_REFERENCE_H_
