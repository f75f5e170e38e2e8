// SPDX-License-Identifier: Apache-2.0
// ForwardPass: the qwen3_5 forward pass, written once over the backend's operations, with its
// scratch memory. How ids are cut into calls changes no bit (clause chunked-equals-whole).
#ifndef HALLMARK_ENGINE_MODEL_FORWARD_H_
#define HALLMARK_ENGINE_MODEL_FORWARD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "engine/model/sequence.h"

namespace hallmark {

enum class LogitRows { kNone, kLast, kAll };

struct ForwardRequest {
  LogitRows logits = LogitRows::kLast;
  // Residual rows to copy out: 0 is the embedding, L the output of layer L - 1.
  std::vector<int> taps;
};

// fp32, on the host.
struct ForwardOutput {
  std::vector<float> logits;             // [0, 1 or ids, vocab_size]
  std::vector<std::vector<float>> taps;  // one per requested tap, [ids, hidden]
};

class ForwardPass {
 public:
  // Rows that go through the layers at once; more ids are fed in pieces of this size.
  static constexpr int64_t kMaxRows = 128;

  // Allocates scratch for up to `max_rows` (1 .. kMaxRows). `model` must outlive the pass.
  static Result<ForwardPass> Create(const Model& model, int64_t max_rows = kMaxRows);

  // Feeds ids at sequence.position() and moves it on. kOutOfRange for an id outside the vocabulary,
  // for no ids, or past max_positions: then nothing has changed. After any other error the sequence
  // is of no use and says so when it is used again.
  Result<ForwardOutput> Run(Sequence& sequence, std::span<const int32_t> ids,
                            const ForwardRequest& request = {});

 private:
  explicit ForwardPass(const Model& model) : model_(&model) {}
  Status RunRows(Sequence& sequence, std::span<const int32_t> ids, const ForwardRequest& request,
                 bool last_piece, ForwardOutput& output);
  Status RunAttention(const ModelLayer& layer, Sequence::Layer& state, int64_t position,
                      KvType kv_type, int64_t rows);
  Status RunDeltaNet(const ModelLayer& layer, Sequence::Layer& state, int64_t rows);
  Status RunMlp(const ModelLayer& layer, int64_t rows);
  Status RunHead(int64_t first_row, int64_t rows, ForwardOutput& output);
  Rows Scratch(const Buffer& buffer, int64_t rows, int64_t cols) const {
    return {buffer.floats(), rows, cols};
  }

  const Model* model_;
  int64_t max_rows_ = 0;
  Buffer hidden_, normed_, mixed_;        // [rows, hidden]
  Buffer q_gate_, q_, k_, v_, attended_;  // attention
  Buffer qkv_, conv_, z_, a_, b_, rule_;  // DeltaNet
  Buffer gate_, up_;                      // MLP
  Buffer logits_;                         // [head rows, vocab]
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_MODEL_FORWARD_H_
