// SPDX-License-Identifier: Apache-2.0
// WatchedBackend: a CPU backend that hands every call on, and that notes on the way how large the
// inputs of EXL3 linears become once they are rotated: they are rounded to fp16 there, whose
// largest value is 65504. Changes no bit. For backends whose memory is the host's.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_WATCHED_BACKEND_H_
#define HALLMARK_CONFORMANCE_VALIDATE_WATCHED_BACKEND_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"

namespace hallmark {

class WatchedBackend : public Backend {
 public:
  struct Input {
    std::string name;        // of the linear
    std::vector<float> suh;  // [k]
    float largest = 0;       // magnitude of a rotated input; NaN once one is not finite
  };

  explicit WatchedBackend(std::unique_ptr<Backend> real) : real_(std::move(real)) {}

  void Watch(bool on) {
    watching_ = on;
    norms_ = 0;
  }
  // Of the EXL3 linears, in the order of their loading.
  const std::vector<Input>& inputs() const { return inputs_; }
  // Number of the norm, two a layer and one at the end, since watching began.
  std::optional<int> first_norm_not_finite() const { return first_norm_not_finite_; }

  std::string name() const override { return real_->name(); }
  std::string tier() const override { return real_->tier(); }
  DraftOps* draft_ops() override { return real_->draft_ops(); }
  Status Finish() override { return real_->Finish(); }
  Result<Buffer> Allocate(size_t bytes) override { return real_->Allocate(bytes); }
  Result<std::optional<uint64_t>> FreeBytes() override { return real_->FreeBytes(); }
  Status Zero(void* destination, size_t bytes) override { return real_->Zero(destination, bytes); }
  Status Fill(void* destination, uint8_t byte, size_t bytes) override {
    return real_->Fill(destination, byte, bytes);
  }
  Status Upload(void* destination, const void* host, size_t bytes) override {
    return real_->Upload(destination, host, bytes);
  }
  Status Download(void* host, const void* source, size_t bytes) override {
    return real_->Download(host, source, bytes);
  }
  Status Copy(void* destination, const void* source, size_t bytes) override {
    return real_->Copy(destination, source, bytes);
  }
  Status CheckShapes(const AttentionGeometry& attention,
                     const DeltaNetGeometry& delta_net) override {
    return real_->CheckShapes(attention, delta_net);
  }
  Result<Buffer> LoadVector(const TensorView& tensor) override { return real_->LoadVector(tensor); }
  Result<std::unique_ptr<LinearWeight>> LoadLinear(const LinearSource& source) override;
  Result<std::unique_ptr<EmbeddingTable>> LoadTable(const TensorView& tensor) override {
    return real_->LoadTable(tensor);
  }
  Status Embed(const EmbeddingTable& table, std::span<const int32_t> ids, Rows out) override {
    return real_->Embed(table, ids, out);
  }
  Status Linear(const LinearWeight& weight, ConstRows x, Rows y) override;
  Status CopyColumns(ConstRows x, int64_t column, Rows out) override {
    return real_->CopyColumns(x, column, out);
  }
  Status Add(Rows x, ConstRows y) override { return real_->Add(x, y); }
  Status RmsNorm(ConstRows x, const float* weight, float eps, Rows out) override;
  Status SwiGlu(ConstRows gate, ConstRows up, Rows out) override {
    return real_->SwiGlu(gate, up, out);
  }
  Status AttentionInputs(const AttentionGeometry& geometry, const AttentionWeights& weights,
                         const RowPosition& position, ConstRows q_gate, ConstRows k, ConstRows v,
                         Rows q, const KvPages& kv) override {
    return real_->AttentionInputs(geometry, weights, position, q_gate, k, v, q, kv);
  }
  Status Attention(const AttentionGeometry& geometry, const RowPosition& position, ConstRows q,
                   ConstRows q_gate, const KvPages& kv, Rows out) override {
    return real_->Attention(geometry, position, q, q_gate, kv, out);
  }
  Status ConvSilu(const DeltaNetGeometry& geometry, const float* weight, ConstRows x,
                  const float* window_in, float* window_out, Rows out) override {
    return real_->ConvSilu(geometry, weight, x, window_in, window_out, out);
  }
  Status DeltaNet(const DeltaNetGeometry& geometry, const DeltaNetWeights& weights, ConstRows qkv,
                  ConstRows a, ConstRows b, const float* state_in, float* state_out,
                  Rows out) override {
    return real_->DeltaNet(geometry, weights, qkv, a, b, state_in, state_out, out);
  }
  Status GatedNorm(const DeltaNetGeometry& geometry, const float* weight, ConstRows o, ConstRows z,
                   Rows out) override {
    return real_->GatedNorm(geometry, weight, o, z, out);
  }

 private:
  std::unique_ptr<Backend> real_;
  bool watching_ = false;
  int norms_ = 0;
  std::optional<int> first_norm_not_finite_;
  std::vector<Input> inputs_;
  std::map<const LinearWeight*, size_t> index_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_WATCHED_BACKEND_H_
