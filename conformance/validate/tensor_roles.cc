// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/tensor_roles.h"

namespace hallmark {

TensorRoles::TensorRoles(const CheckpointInventory& inventory) {
  Set(inventory.embedding, TensorRole::kTable);
  Set(inventory.final_norm, TensorRole::kVector);
  for (const LayerTensors& layer : inventory.layers) {
    Set(layer.input_norm, TensorRole::kVector);
    Set(layer.post_norm, TensorRole::kVector);
    if (const auto* attention = std::get_if<AttentionTensors>(&layer.mixer)) {
      Set(attention->q_norm, TensorRole::kVector);
      Set(attention->k_norm, TensorRole::kVector);
    } else {
      const auto& delta = std::get<DeltaNetTensors>(layer.mixer);
      Set(delta.conv, TensorRole::kMatrix);
      Set(delta.a_log, TensorRole::kVector);
      Set(delta.dt_bias, TensorRole::kVector);
      Set(delta.norm, TensorRole::kVector);
    }
  }
  for (const LinearSource* linear : Linears(inventory)) {
    const bool head = inventory.head && linear == &*inventory.head;
    SetLinear(*linear, head ? TensorRole::kTable : TensorRole::kMatrix);
  }
}

TensorRoles::TensorRoles(const DrafterInventory& inventory) {
  Set(inventory.hidden_norm, TensorRole::kMatrix);
  Set(inventory.norm, TensorRole::kMatrix);
  for (const DrafterLayerTensors& layer : inventory.layers) {
    for (const TensorView* norm :
         {&layer.input_norm, &layer.post_norm, &layer.q_norm, &layer.k_norm}) {
      Set(*norm, TensorRole::kMatrix);
    }
    for (const auto* conv : {&layer.attention_conv, &layer.mlp_conv}) {
      if (*conv) Set((*conv)->base, TensorRole::kVector);
    }
  }
  if (inventory.selector) {
    Set(inventory.selector->predecessor, TensorRole::kTable);
    Set(inventory.selector->successor, TensorRole::kTable);
  }
  for (const LinearSource* linear : Linears(inventory)) SetLinear(*linear, TensorRole::kMatrix);
}

TensorRole TensorRoles::Of(const TensorView& tensor) const {
  const auto found = roles_.find(tensor.name);
  return found == roles_.end() ? TensorRole::kUnused : found->second;
}

void TensorRoles::SetLinear(const LinearSource& linear, TensorRole plain) {
  if (const auto* matrix = std::get_if<PlainLinear>(&linear.weights)) {
    Set(matrix->weight, plain);
    if (matrix->bias) Set(*matrix->bias, TensorRole::kVector);
  } else if (const auto* affine = std::get_if<AffineLinear>(&linear.weights)) {
    Set(affine->weight, TensorRole::kVector);
    Set(affine->scales, TensorRole::kMatrix);
    Set(affine->biases, TensorRole::kVector);
  } else {
    const auto& group = std::get<Exl3Group>(linear.weights);
    Set(group.trellis, TensorRole::kTrellis);
    Set(group.input_scale, TensorRole::kVector);
    Set(group.output_scale, TensorRole::kVector);
    if (group.bias) Set(*group.bias, TensorRole::kVector);
  }
}

}  // namespace hallmark
