// SPDX-License-Identifier: Apache-2.0
// KvPool: the key/value pages of one model on one backend. A page holds 256 positions of every
// attention layer; sequences that share a beginning share its pages, and the last holder's release
// gives a page back. Bounded in pages; never moves one. Not thread-safe. Whether a page may be
// written is its holder's question (sequence.h), not the pool's.
#ifndef HALLMARK_ENGINE_MODEL_KV_POOL_H_
#define HALLMARK_ENGINE_MODEL_KV_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/backend/backend.h"
#include "engine/format/model_config.h"

namespace hallmark {

struct KvPoolOptions {
  KvType type = KvType::kBf16;
  int64_t max_pages = 0;  // 0: as many as the backend's memory holds
  // Fill every page that is handed out with bytes that are NaN in either type, so that a key which
  // was never stored cannot pass for one.
  bool poison = false;
};

// Shared ownership: the page goes back to the pool when the last reference goes. References may
// outlive the pool, not the backend.
using KvPageRef = std::shared_ptr<Buffer>;

class KvPool {
 public:
  // `backend` must outlive every page.
  KvPool(Backend& backend, const ModelConfig& config, const KvPoolOptions& options);
  ~KvPool();
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  // A page of undefined contents. kResource when max_pages are held.
  Result<KvPageRef> Take();

  bool full() const;
  // Asks whoever can to let go of pages it holds; false when it has none left. What it held may
  // have been shared, so the pool may still be full.
  bool Reclaim() { return reclaim_ && reclaim_(); }
  void set_reclaim(std::function<bool()> reclaim) { reclaim_ = std::move(reclaim); }

  Backend& backend() const { return *backend_; }
  KvType type() const { return options_.type; }
  int64_t pages_held() const;  // by all holders together
  size_t page_bytes() const { return layers_ * layer_bytes_; }
  // Where attention layer `layer` (counted among attention layers) begins in a page.
  size_t layer_offset(size_t layer) const { return layer * layer_bytes_; }

 private:
  struct Shelf;  // outlives the pool while pages are held

  Backend* backend_;
  KvPoolOptions options_;
  size_t layers_ = 0;
  size_t layer_bytes_ = 0;
  std::function<bool()> reclaim_;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_MODEL_KV_POOL_H_
