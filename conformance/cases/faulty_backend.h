// SPDX-License-Identifier: Apache-2.0
// FaultyBackend: a backend that hands every call on and breaks one promise on purpose, so that the
// cases of this folder can be seen red on a real engine. For tests alone.
#ifndef HALLMARK_CONFORMANCE_CASES_FAULTY_BACKEND_H_
#define HALLMARK_CONFORMANCE_CASES_FAULTY_BACKEND_H_

#include <cmath>
#include <memory>
#include <string>

#include "engine/backend/backend.h"

namespace hallmark {

enum class Fault {
  kNone,
  kLastBitAboveSixteenRows,  // another arithmetic for wide calls, one ulp away
  kStateKeptAfterOneRow,     // the recurrence drops what a one-row call should have kept
  kSwappedOutputs,           // the first two outputs of every linear change places
  kFlatLinears,              // every linear gives zeros
  kOutOfMemory,              // no linear can be loaded or run
};

class FaultyBackend : public Backend {
 public:
  FaultyBackend(Backend& real, Fault fault) : real_(real), fault_(fault) {}

  std::string name() const override { return real_.name(); }
  std::string tier() const override { return real_.tier(); }
  Result<Buffer> Allocate(size_t bytes) override { return real_.Allocate(bytes); }
  Status Zero(void* destination, size_t bytes) override { return real_.Zero(destination, bytes); }
  Status Upload(void* destination, const void* host, size_t bytes) override {
    return real_.Upload(destination, host, bytes);
  }
  Status Download(void* host, const void* source, size_t bytes) override {
    return real_.Download(host, source, bytes);
  }
  Status Copy(void* destination, const void* source, size_t bytes) override {
    return real_.Copy(destination, source, bytes);
  }
  Result<Buffer> LoadVector(const TensorView& tensor) override { return real_.LoadVector(tensor); }
  Result<std::unique_ptr<LinearWeight>> LoadLinear(const LinearSource& source) override {
    if (fault_ == Fault::kOutOfMemory) return Fail(Code::kResource, "no memory");
    return real_.LoadLinear(source);
  }
  Result<std::unique_ptr<EmbeddingTable>> LoadTable(const TensorView& tensor) override {
    return real_.LoadTable(tensor);
  }
  Status Embed(const EmbeddingTable& table, std::span<const int32_t> ids, Rows out) override {
    return real_.Embed(table, ids, out);
  }

  // Reaches into the rows, so it serves backends whose memory is the host's.
  Status Linear(const LinearWeight& weight, ConstRows x, Rows y) override {
    if (fault_ == Fault::kOutOfMemory) return Fail(Code::kResource, "no memory");
    TRY(real_.Linear(weight, x, y));
    for (int64_t row = 0; row < y.rows; ++row) {
      float* out = y.data + row * y.cols;
      if (fault_ == Fault::kSwappedOutputs) std::swap(out[0], out[1]);
      if (fault_ == Fault::kLastBitAboveSixteenRows && y.rows > 16) {
        out[0] = std::nextafter(out[0], INFINITY);
      }
      if (fault_ == Fault::kFlatLinears) std::fill(out, out + y.cols, 0.0f);
    }
    return {};
  }

  Status CopyColumns(ConstRows x, int64_t column, Rows out) override {
    return real_.CopyColumns(x, column, out);
  }
  Status Add(Rows x, ConstRows y) override { return real_.Add(x, y); }
  Status RmsNorm(ConstRows x, const float* weight, float eps, Rows out) override {
    return real_.RmsNorm(x, weight, eps, out);
  }
  Status SwiGlu(ConstRows gate, ConstRows up, Rows out) override {
    return real_.SwiGlu(gate, up, out);
  }
  Status AttentionInputs(const AttentionGeometry& geometry, const AttentionWeights& weights,
                         const RowPosition& position, ConstRows q_gate, ConstRows k, ConstRows v,
                         Rows q, const KvPages& kv) override {
    return real_.AttentionInputs(geometry, weights, position, q_gate, k, v, q, kv);
  }
  Status Attention(const AttentionGeometry& geometry, const RowPosition& position, ConstRows q,
                   ConstRows q_gate, const KvPages& kv, Rows out) override {
    return real_.Attention(geometry, position, q, q_gate, kv, out);
  }
  Status ConvSilu(const DeltaNetGeometry& geometry, const float* weight, ConstRows x,
                  const float* window_in, float* window_out, Rows out) override {
    return real_.ConvSilu(geometry, weight, x, window_in, window_out, out);
  }
  Status DeltaNet(const DeltaNetGeometry& geometry, const DeltaNetWeights& weights, ConstRows qkv,
                  ConstRows a, ConstRows b, const float* state_in, float* state_out,
                  Rows out) override {
    const bool dropped = fault_ == Fault::kStateKeptAfterOneRow && qkv.rows == 1;
    return real_.DeltaNet(geometry, weights, qkv, a, b, state_in, dropped ? nullptr : state_out,
                          out);
  }
  Status GatedNorm(const DeltaNetGeometry& geometry, const float* weight, ConstRows o, ConstRows z,
                   Rows out) override {
    return real_.GatedNorm(geometry, weight, o, z, out);
  }

 private:
  Backend& real_;
  Fault fault_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_FAULTY_BACKEND_H_
