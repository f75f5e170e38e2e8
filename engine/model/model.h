// SPDX-License-Identifier: Apache-2.0
// Model: the weights of one checkpoint bound to one backend. Opening is all or nothing.
#ifndef HALLMARK_ENGINE_MODEL_MODEL_H_
#define HALLMARK_ENGINE_MODEL_MODEL_H_

#include <memory>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/format/inventory.h"
#include "engine/format/model_config.h"

namespace hallmark {

struct AttentionLayer {
  std::unique_ptr<LinearWeight> q, k, v, o;
  Buffer q_norm, k_norm;  // [head_dim]
};

struct DeltaNetLayer {
  std::unique_ptr<LinearWeight> qkv, z, a, b, out;
  Buffer conv;            // [channels, conv_kernel]
  Buffer a_log, dt_bias;  // [value_heads]
  Buffer norm;            // [value_dim]
};

struct ModelLayer {
  LayerKind kind = LayerKind::kDeltaNet;
  Buffer input_norm, post_norm;  // [hidden]
  AttentionLayer attention;      // one of the two is in use
  DeltaNetLayer delta_net;
  std::unique_ptr<LinearWeight> gate, up, down;
};

struct Model {
  // Copies or repacks every weight into `backend`, which must outlive the model; so must the
  // checkpoint behind `inventory` (an embedding row is read from it when it is asked for).
  static Result<std::unique_ptr<Model>> Load(const CheckpointInventory& inventory,
                                             const ModelConfig& config, Backend& backend);

  Backend* backend = nullptr;
  ModelConfig config;
  AttentionGeometry attention;
  DeltaNetGeometry delta_net;
  std::unique_ptr<EmbeddingTable> embedding;
  Buffer inv_freq;  // [rotary_dim / 2]
  std::vector<ModelLayer> layers;
  Buffer final_norm;  // [hidden]
  std::unique_ptr<LinearWeight> head;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_MODEL_MODEL_H_
