// SPDX-License-Identifier: Apache-2.0
#include "engine/model/sequence.h"

#include <algorithm>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/sha256.h"
#include "engine/model/geometry.h"

namespace hallmark {

size_t Sequence::PageTableBytes(const ModelConfig& config) {
  const int64_t pages = (config.max_positions + kKvPageTokens - 1) / kKvPageTokens;
  return static_cast<size_t>(pages) * sizeof(std::byte*);
}

Result<Sequence> Sequence::Create(Backend& backend, const ModelConfig& config, KvType kv_type) {
  return Create(std::make_shared<KvPool>(backend, config, KvPoolOptions{.type = kv_type}), config);
}

Result<Sequence> Sequence::Blank(std::shared_ptr<KvPool> pool, const ModelConfig& config) {
  Sequence sequence;
  sequence.identity_ = pool->backend().NewIdentity();
  sequence.table_ = TRY(pool->backend().Allocate(PageTableBytes(config)));
  sequence.layers_.resize(config.layers.size());
  size_t attention = 0;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (config.layers[i] != LayerKind::kAttention) continue;
    sequence.layers_[i].page_offset = pool->layer_offset(attention++);
  }
  sequence.pool_ = std::move(pool);
  sequence.config_ = &config;
  return sequence;
}

Result<Sequence> Sequence::Create(std::shared_ptr<KvPool> pool, const ModelConfig& config) {
  Backend& backend = pool->backend();
  Sequence sequence = TRY(Blank(std::move(pool), config));
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

Result<Sequence> Sequence::Fork() const {
  if (failed_) return Fail(Code::kInternal, "the sequence was lost in an earlier failed pass");
  Backend& backend = pool_->backend();
  Sequence fork = TRY(Blank(pool_, *config_));
  fork.position_ = position_;
  const auto copy = [&](const Buffer& from, Buffer& to) -> Status {
    to = TRY(backend.Allocate(from.bytes()));
    return backend.Copy(to.data(), from.data(), from.bytes());
  };
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (config_->layers[i] != LayerKind::kDeltaNet) continue;
    TRY(copy(layers_[i].delta_net.state, fork.layers_[i].delta_net.state));
    TRY(copy(layers_[i].delta_net.window, fork.layers_[i].delta_net.window));
  }
  // Only pages that hold something: room that was reserved ahead stays with the original.
  const size_t used = static_cast<size_t>((position_ + kKvPageTokens - 1) / kKvPageTokens);
  for (size_t i = 0; i < used; ++i) fork.SetPage(i, pages_[i]);
  TRY(fork.SendTable());
  return fork;
}

void Sequence::SetPage(size_t index, KvPageRef page) {
  if (index == pages_.size()) pages_.emplace_back();
  pages_[index] = std::move(page);
  table_good_ = std::min(table_good_, index);
}

Status Sequence::SendTable() {
  if (table_good_ == pages_.size()) return {};
  constexpr size_t kEntry = sizeof(std::byte*);
  CHECK(pages_.size() * kEntry <= table_.bytes());
  std::vector<const void*> entries;
  for (size_t i = table_good_; i < pages_.size(); ++i) entries.push_back(pages_[i]->data());
  TRY(pool_->backend().Upload(static_cast<std::byte*>(table_.data()) + table_good_ * kEntry,
                              entries.data(), entries.size() * kEntry));
  table_good_ = pages_.size();
  return {};
}

Status Sequence::Reserve(int64_t tokens) {
  const size_t first = static_cast<size_t>(position_ / kKvPageTokens);
  const size_t end = static_cast<size_t>((tokens + kKvPageTokens - 1) / kKvPageTokens);
  for (size_t i = first; i < end; ++i) {
    const auto writable = [&] { return i < pages_.size() && pages_[i].use_count() == 1; };
    while (!writable()) {
      auto page = pool_->Take();
      if (!page.has_value()) {
        // Whoever lets go may have been the other holder of this very page.
        if (page.error().code == Code::kResource && pool_->Reclaim()) continue;
        return Fail(std::move(page).error());
      }
      if (i < pages_.size()) {
        TRY(pool_->backend().Copy((*page)->data(), pages_[i]->data(), pool_->page_bytes()));
      }
      SetPage(i, std::move(*page));
    }
  }
  return SendTable();
}

size_t Sequence::bytes() const {
  size_t total = table_.bytes() + pages_.size() * pool_->page_bytes();
  for (const Layer& layer : layers_) {
    total += layer.delta_net.state.bytes() + layer.delta_net.window.bytes();
  }
  return total;
}

Result<std::string> Sequence::StateDigest() const {
  if (failed_) return Fail(Code::kInternal, "the sequence was lost in an earlier failed pass");
  Sha256 hash;
  std::vector<std::byte> host;
  auto add = [&](const void* source, size_t bytes) -> Status {
    host.resize(bytes);
    TRY(pool_->backend().Download(host.data(), source, bytes));
    hash.Update(host);
    return {};
  };
  const size_t page_bytes = KvPageBytes(kv_type(), config_->kv_heads, config_->head_dim);
  const size_t row_bytes = page_bytes / (2 * kKvPageTokens);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    if (config_->layers[i] == LayerKind::kDeltaNet) {
      TRY(add(layer.delta_net.state.data(), layer.delta_net.state.bytes()));
      TRY(add(layer.delta_net.window.data(), layer.delta_net.window.bytes()));
      continue;
    }
    for (int64_t start = 0; start < position_; start += kKvPageTokens) {
      const KvPageRef& whole = pages_[static_cast<size_t>(start / kKvPageTokens)];
      const std::byte* page = static_cast<const std::byte*>(whole->data()) + layer.page_offset;
      const size_t used =
          static_cast<size_t>(std::min<int64_t>(kKvPageTokens, position_ - start)) * row_bytes;
      TRY(add(page, used));                   // K rows in use
      TRY(add(page + page_bytes / 2, used));  // V rows in use
    }
  }
  return Hex(hash.Finish());
}

}  // namespace hallmark
