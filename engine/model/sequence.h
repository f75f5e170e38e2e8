// SPDX-License-Identifier: Apache-2.0
// Sequence: what one stream of tokens leaves behind in a model: key/value pages of the attention
// layers, state and convolution window of the DeltaNet layers, and the next position. Move-only.
// Not thread-safe; a sequence belongs to the backend it was made for.
//
// Forks share pages. A page is written by its only holder; who else wants to write gets a copy
// first, so a fork never sees what another one stored (clause resumed-equals-fresh).
#ifndef HALLMARK_ENGINE_MODEL_SEQUENCE_H_
#define HALLMARK_ENGINE_MODEL_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/format/model_config.h"
#include "engine/model/kv_pool.h"

namespace hallmark {

class Sequence {
 public:
  // Empty sequence: position 0, zero state and windows. kResource when memory runs out. `pool` was
  // made for `config`, which must outlive the sequence.
  static Result<Sequence> Create(std::shared_ptr<KvPool> pool, const ModelConfig& config);
  // The same with a pool of its own, without bound.
  static Result<Sequence> Create(Backend& backend, const ModelConfig& config, KvType kv_type);

  // A second sequence at the same position: states are copied, pages shared.
  Result<Sequence> Fork() const;

  // Makes positions position() .. tokens - 1 writable: adds pages, and replaces a shared one by a
  // copy. On an error the sequence is as it was, with more room perhaps.
  Status Reserve(int64_t tokens);

  // Device bytes of the list of pages, as long as it can become.
  static size_t PageTableBytes(const ModelConfig& config);

  // Position of the next token: the number of tokens that have joined.
  int64_t position() const { return position_; }
  KvType kv_type() const { return pool_->type(); }
  // Bytes of states, of the list of pages and of every page held, shared or not.
  size_t bytes() const;

  // SHA-256 over the state that decides every later token, in layer order: per attention layer the
  // stored K and V bytes of positions below position(), per DeltaNet layer S and the window.
  // Two sequences are the same, to the bit, iff their digests are equal.
  Result<std::string> StateDigest() const;

 private:
  friend class ForwardPass;
  struct DeltaNetState {
    Buffer state;   // [value_heads, key_dim, value_dim]
    Buffer window;  // [conv_kernel - 1, channels], oldest first
  };
  struct Layer {
    size_t page_offset = 0;   // attention: where in a page this layer's part begins
    DeltaNetState delta_net;  // else
  };

  static Result<Sequence> Blank(std::shared_ptr<KvPool> pool, const ModelConfig& config);
  void SetPage(size_t index, KvPageRef page);
  // Brings the table up to date with pages_.
  Status SendTable();
  KvPages pages_of(size_t layer) const {
    return {pool_->type(), static_cast<std::byte* const*>(table_.data()),
            layers_[layer].page_offset};
  }

  std::shared_ptr<KvPool> pool_;
  const ModelConfig* config_ = nullptr;
  // Names the memory that a pass over this sequence touches, in keys of recorded work.
  uint64_t identity_ = 0;
  int64_t position_ = 0;
  bool failed_ = false;  // a forward pass failed half-way: the state is of no use
  std::vector<KvPageRef> pages_;
  Buffer table_;           // the pages' addresses, for the backend; never moves
  size_t table_good_ = 0;  // entries that are up to date
  std::vector<Layer> layers_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_MODEL_SEQUENCE_H_
