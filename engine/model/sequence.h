// SPDX-License-Identifier: Apache-2.0
// Sequence: what one stream of tokens leaves behind in a model: key/value pages of the attention
// layers, state and convolution window of the DeltaNet layers, and the next position. Move-only.
// Not thread-safe; a sequence belongs to the backend it was made for.
#ifndef HALLMARK_ENGINE_MODEL_SEQUENCE_H_
#define HALLMARK_ENGINE_MODEL_SEQUENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/format/model_config.h"

namespace hallmark {

class Sequence {
 public:
  // Empty sequence: position 0, zero state and windows. kResource when memory runs out.
  static Result<Sequence> Create(Backend& backend, const ModelConfig& config, KvType kv_type);

  // Makes room for keys up to position `tokens` - 1; pages are added, never moved.
  Status Reserve(int64_t tokens);

  // Position of the next token: the number of tokens fed so far.
  int64_t position() const { return position_; }
  KvType kv_type() const { return kv_type_; }

  // SHA-256 over the state that decides every later token, in layer order: per attention layer the
  // stored K and V bytes of positions below position(), per DeltaNet layer S and the window.
  // Two sequences are the same, to the bit, iff their digests are equal.
  Result<std::string> StateDigest() const;

 private:
  friend class ForwardPass;
  struct AttentionState {
    std::vector<Buffer> pages;
    std::vector<std::byte*> addresses;
  };
  struct DeltaNetState {
    Buffer state;   // [value_heads, key_dim, value_dim]
    Buffer window;  // [conv_kernel - 1, channels], oldest first
  };
  struct Layer {
    AttentionState attention;  // one of the two is in use
    DeltaNetState delta_net;
  };

  Backend* backend_ = nullptr;
  const ModelConfig* config_ = nullptr;
  KvType kv_type_ = KvType::kBf16;
  int64_t position_ = 0;
  bool failed_ = false;  // a forward pass failed half-way: the state is of no use
  std::vector<Layer> layers_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_MODEL_SEQUENCE_H_
