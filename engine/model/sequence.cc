// SPDX-License-Identifier: Apache-2.0
#include "engine/model/sequence.h"

#include <algorithm>
#include <vector>

#include "engine/base/sha256.h"
#include "engine/model/geometry.h"

namespace hallmark {

Result<Sequence> Sequence::Create(Backend& backend, const ModelConfig& config, KvType kv_type) {
  Sequence sequence;
  sequence.backend_ = &backend;
  sequence.config_ = &config;
  sequence.kv_type_ = kv_type;
  sequence.layers_.resize(config.layers.size());
  const DeltaNetGeometry geometry = DeltaNetGeometryOf(config);
  const size_t state_bytes = static_cast<size_t>(geometry.state_elements()) * sizeof(float);
  const size_t window_bytes =
      static_cast<size_t>(geometry.conv_kernel - 1) * geometry.channels() * sizeof(float);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (config.layers[i] != LayerKind::kDeltaNet) continue;
    DeltaNetState& layer = sequence.layers_[i].delta_net;
    layer.state = TRY(backend.Allocate(state_bytes));
    layer.window = TRY(backend.Allocate(window_bytes));
    TRY(backend.Zero(layer.state.data(), state_bytes));
    TRY(backend.Zero(layer.window.data(), window_bytes));
  }
  return sequence;
}

Status Sequence::Reserve(int64_t tokens) {
  const size_t pages = static_cast<size_t>((tokens + kKvPageTokens - 1) / kKvPageTokens);
  const size_t page_bytes = KvPageBytes(kv_type_, config_->kv_heads, config_->head_dim);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (config_->layers[i] != LayerKind::kAttention) continue;
    AttentionState& layer = layers_[i].attention;
    while (layer.pages.size() < pages) {
      layer.pages.push_back(TRY(backend_->Allocate(page_bytes)));
      layer.addresses.push_back(static_cast<std::byte*>(layer.pages.back().data()));
    }
  }
  return {};
}

Result<std::string> Sequence::StateDigest() const {
  if (failed_) return Fail(Code::kInternal, "the sequence was lost in an earlier failed pass");
  Sha256 hash;
  std::vector<std::byte> host;
  auto add = [&](const void* source, size_t bytes) -> Status {
    host.resize(bytes);
    TRY(backend_->Download(host.data(), source, bytes));
    hash.Update(host);
    return {};
  };
  const size_t page_bytes = KvPageBytes(kv_type_, config_->kv_heads, config_->head_dim);
  const size_t row_bytes = page_bytes / (2 * kKvPageTokens);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    if (config_->layers[i] == LayerKind::kDeltaNet) {
      TRY(add(layer.delta_net.state.data(), layer.delta_net.state.bytes()));
      TRY(add(layer.delta_net.window.data(), layer.delta_net.window.bytes()));
      continue;
    }
    for (int64_t start = 0; start < position_; start += kKvPageTokens) {
      const std::byte* page = layer.attention.addresses[static_cast<size_t>(start / kKvPageTokens)];
      const size_t used =
          static_cast<size_t>(std::min<int64_t>(kKvPageTokens, position_ - start)) * row_bytes;
      TRY(add(page, used));                   // K rows in use
      TRY(add(page + page_bytes / 2, used));  // V rows in use
    }
  }
  return Hex(hash.Finish());
}

}  // namespace hallmark
