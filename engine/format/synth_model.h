// SPDX-License-Identifier: Apache-2.0
// SynthModel: a checkpoint of a public geometry with random weights: every tensor by name, shape
// and formula, and its config.json. For measuring and planning without a download; it has learned
// nothing. Scales are such that a linear gives outputs as large as its inputs, and what all layers
// add to the residual stream is no larger than one id's random part, so activations stay finite
// through any number of layers and logits are neither flat nor one-hot.
//
// Drafts land by a trick. Three embedding rows in four lean the same way, far enough that a model
// and its drafter, which share embedding and head, end on nearly the same direction and rank the
// same few ids first. The fourth row leans nowhere, and what follows it could be any id: so output
// varies. How many drafts land says nothing of any real drafter.
#ifndef HALLMARK_ENGINE_FORMAT_SYNTH_MODEL_H_
#define HALLMARK_ENGINE_FORMAT_SYNTH_MODEL_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/format/linear.h"
#include "engine/format/synth_tensor.h"

namespace hallmark {

// Heads are of 256 channels in attention and of 128 in DeltaNet; every fourth layer is attention.
struct SynthGeometry {
  std::string_view name;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t vocab = 248320;
  int64_t draft_heads = 0;  // of its drafter, of 128 channels; a quarter as many for keys
};

// The public dense models, 0.8B to 27B.
std::span<const SynthGeometry> SynthGeometries();
// Null for a name that is none.
const SynthGeometry* FindSynthGeometry(std::string_view name);

struct SynthModelOptions {
  SynthGeometry geometry;  // its layers and vocab may be changed
  double bits = 4;         // of the layers, on average; 1 .. 8
  int head_bits = 6;       // 1 .. 8; 16: a plain head
  Codebook codebook = Codebook::kMul1;
};

struct SynthCheckpoint {
  std::string config;        // config.json
  std::string quantization;  // quantization_config.json; "": none
  std::vector<SynthTensor> tensors;
  double bits = 0;  // what the layers' linears came to

  // Null for a name that is none.
  const SynthTensor* Find(std::string_view name) const;
};

// The rule of mixed widths: linears that share an input (q, k, v; qkv, z; gate, up; each other one
// alone) have one width, floor(bits) or one more, taken in the order of the layers so that the
// average so far is as near to `bits` as it can be, the lower one when both are as near.
// kOutOfRange for bits, layers or a vocabulary outside their range.
Result<SynthCheckpoint> MakeSynthModel(const SynthModelOptions& options);

// Of the last norm of a model and of its drafter: two that differ by more would tell their rows
// apart.
inline constexpr float kLastNormSpread = 0.02f;

// The id whose embedding a drafter of that vocabulary takes for what it has to guess.
int64_t SynthMaskId(int64_t vocab);

enum class SynthDrafterWeights { kBf16, kAffine4 };

// A DFlash2 drafter for that model: five layers, blocks of 8, a window of 2048; its taps are those
// of the published drafter for 64 layers, else spread evenly. Needs 2 target layers.
Result<SynthCheckpoint> MakeSynthDrafter(const SynthGeometry& target, SynthDrafterWeights weights);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_SYNTH_MODEL_H_
