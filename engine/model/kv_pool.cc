// SPDX-License-Identifier: Apache-2.0
#include "engine/model/kv_pool.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace hallmark {

// Pages that were let go wait here for the next taker; they are freed with the pool.
struct KvPool::Shelf {
  std::vector<Buffer> free;
  int64_t held = 0;
  bool open = true;
};

KvPool::KvPool(Backend& backend, const ModelConfig& config, const KvPoolOptions& options)
    : backend_(&backend),
      options_(options),
      layers_(static_cast<size_t>(
          std::count(config.layers.begin(), config.layers.end(), LayerKind::kAttention))),
      layer_bytes_(KvPageBytes(options.type, config.kv_heads, config.head_dim)),
      shelf_(std::make_shared<Shelf>()) {}

KvPool::~KvPool() {
  shelf_->open = false;
  shelf_->free.clear();
}

int64_t KvPool::pages_held() const { return shelf_->held; }

bool KvPool::full() const { return options_.max_pages > 0 && shelf_->held >= options_.max_pages; }

Result<KvPageRef> KvPool::Take() {
  if (full()) {
    return Fail(Code::kResource, "all " + std::to_string(options_.max_pages) + " pages of " +
                                     std::to_string(kKvPageTokens) +
                                     " positions are in use, expected a free one");
  }
  Buffer memory;
  if (shelf_->free.empty()) {
    memory = TRY(backend_->Allocate(page_bytes()));
  } else {
    memory = std::move(shelf_->free.back());
    shelf_->free.pop_back();
  }
  if (options_.poison && page_bytes() > 0) {
    const std::vector<std::byte> nan(page_bytes(), std::byte{0xFF});
    TRY(backend_->Upload(memory.data(), nan.data(), nan.size()));
  }
  ++shelf_->held;
  return KvPageRef(new Buffer(std::move(memory)), [shelf = shelf_](Buffer* page) {
    --shelf->held;
    if (shelf->open) shelf->free.push_back(std::move(*page));
    delete page;
  });
}

}  // namespace hallmark
