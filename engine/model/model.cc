// SPDX-License-Identifier: Apache-2.0
#include "engine/model/model.h"

#include "engine/model/geometry.h"

namespace hallmark {
namespace {

Status LoadAttention(const AttentionTensors& tensors, Backend& backend, AttentionLayer& layer) {
  layer.q = TRY(backend.LoadLinear(tensors.q_gate));
  layer.k = TRY(backend.LoadLinear(tensors.k));
  layer.v = TRY(backend.LoadLinear(tensors.v));
  layer.o = TRY(backend.LoadLinear(tensors.o));
  layer.q_norm = TRY(backend.LoadVector(tensors.q_norm));
  layer.k_norm = TRY(backend.LoadVector(tensors.k_norm));
  return {};
}

Status LoadDeltaNet(const DeltaNetTensors& tensors, Backend& backend, DeltaNetLayer& layer) {
  layer.qkv = TRY(backend.LoadLinear(tensors.qkv));
  layer.z = TRY(backend.LoadLinear(tensors.z));
  layer.a = TRY(backend.LoadLinear(tensors.a));
  layer.b = TRY(backend.LoadLinear(tensors.b));
  layer.out = TRY(backend.LoadLinear(tensors.out));
  layer.conv = TRY(backend.LoadVector(tensors.conv));
  layer.a_log = TRY(backend.LoadVector(tensors.a_log));
  layer.dt_bias = TRY(backend.LoadVector(tensors.dt_bias));
  layer.norm = TRY(backend.LoadVector(tensors.norm));
  return {};
}

Result<ModelLayer> LoadLayer(const LayerTensors& tensors, Backend& backend) {
  ModelLayer layer;
  layer.kind = tensors.kind();
  layer.input_norm = TRY(backend.LoadVector(tensors.input_norm));
  layer.post_norm = TRY(backend.LoadVector(tensors.post_norm));
  layer.gate = TRY(backend.LoadLinear(tensors.gate));
  layer.up = TRY(backend.LoadLinear(tensors.up));
  layer.down = TRY(backend.LoadLinear(tensors.down));
  if (layer.kind == LayerKind::kAttention) {
    TRY(LoadAttention(std::get<AttentionTensors>(tensors.mixer), backend, layer.attention));
  } else {
    TRY(LoadDeltaNet(std::get<DeltaNetTensors>(tensors.mixer), backend, layer.delta_net));
  }
  return layer;
}

// The embedding used as head: the same matrix [vocab, hidden], read as a plain linear.
LinearSource TiedHead(const TensorView& embedding, const ModelConfig& config) {
  return {.in_features = config.hidden,
          .out_features = config.vocab,
          .weights = PlainLinear{.name = embedding.name,
                                 .k = config.hidden,
                                 .n = config.vocab,
                                 .weight = embedding,
                                 .bias = {}}};
}

}  // namespace

Result<std::unique_ptr<Model>> Model::Load(const CheckpointInventory& inventory,
                                           const ModelConfig& config, Backend& backend) {
  auto model = std::make_unique<Model>();
  model->backend = &backend;
  model->config = config;
  model->attention = AttentionGeometryOf(config);
  model->delta_net = DeltaNetGeometryOf(config);
  const std::vector<float> inv_freq =
      InverseFrequencies(config.rope_theta, model->attention.rotary_dim);
  model->inv_freq = TRY(backend.Allocate(inv_freq.size() * sizeof(float)));
  TRY(backend.Upload(model->inv_freq.data(), inv_freq.data(), inv_freq.size() * sizeof(float)));
  model->embedding = TRY(backend.LoadTable(inventory.embedding));
  for (const LayerTensors& tensors : inventory.layers) {
    model->layers.push_back(TRY(LoadLayer(tensors, backend)));
  }
  model->final_norm = TRY(backend.LoadVector(inventory.final_norm));
  model->head = TRY(
      backend.LoadLinear(inventory.head ? *inventory.head : TiedHead(inventory.embedding, config)));
  return model;
}

}  // namespace hallmark
