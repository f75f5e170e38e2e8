// SPDX-License-Identifier: Apache-2.0
// Backend: the operations the forward pass is written over, once for every device. It knows shapes,
// weights and buffers, and no model: no layer, no tensor name, no config.
//
// The promise of every operation (clause row-invariance): the bits of a row depend on that row, the
// weights and the row's absolute position, and never on how many rows share the call.
// Activations are fp32, row-major and contiguous. Pointers are the backend's own memory (host
// memory for the CPU backend). Operations on one backend object run in the order they are called.
// An asynchronous backend may tell what an operation found wrong at a later call; Download, Finish
// and DraftOps::TopColumns tell all that came before them. Once a device has failed, every further
// call gives that same kDevice error.
#ifndef HALLMARK_ENGINE_BACKEND_BACKEND_H_
#define HALLMARK_ENGINE_BACKEND_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/backend/buffer.h"
#include "engine/backend/geometry.h"
#include "engine/base/result.h"
#include "engine/format/linear.h"
#include "engine/format/tensor.h"

namespace hallmark {

// fp32 [rows, cols], contiguous. A view; the caller keeps the memory alive.
struct ConstRows {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
};
struct Rows {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;

  operator ConstRows() const { return {data, rows, cols}; }
  // Rows [first, first + count).
  Rows Slice(int64_t first, int64_t count) const { return {data + first * cols, count, cols}; }
};

// A linear layer in the backend's own layout. Made by Backend::LoadLinear, used by the backend that
// made it.
class LinearWeight {
 public:
  virtual ~LinearWeight() = default;
  int64_t in_features = 0;
  int64_t out_features = 0;
};

// An embedding table [entries, cols], kept in its stored type.
class EmbeddingTable {
 public:
  virtual ~EmbeddingTable() = default;
  int64_t entries = 0;
  int64_t cols = 0;
};

class DeviceChecks;
class DraftOps;

// What there is to say of a backend's device, for receipts.
struct BackendDevice {
  std::string name;                // "NVIDIA H200"
  std::string compute_capability;  // "9.0"
  std::string driver, runtime;     // versions of CUDA: what the driver serves, what was built with
  // SHA-256 of fixed products that the device computed, hex: part of the arithmetic id, because
  // devices of other generations may round them otherwise.
  std::string fingerprint;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // What ran, for receipts: "cpu" and e.g. "avx2".
  virtual std::string name() const = 0;
  virtual std::string tier() const = 0;
  // Absent where the backend is the machine itself.
  virtual std::optional<BackendDevice> device() const { return std::nullopt; }

  // What drafters need beside the operations below (draft_ops.h); null where there is none. Lives
  // as long as the backend.
  virtual DraftOps* draft_ops() { return nullptr; }
  // What a receipt looks at on a device (device_checks.h); null where the backend is the machine
  // itself. Lives as long as the backend.
  virtual DeviceChecks* device_checks() { return nullptr; }

  // Waits until all that was asked for is done, and tells what was wrong with it.
  virtual Status Finish() { return {}; }

  // Calls `work`, which asks for operations and copies on this backend, and for nothing that waits
  // or travels (Upload, Download, Finish, Embed, Allocate). Work of one key asks for the same
  // things on the same memory each time, so a backend may record it as a graph and replay that
  // instead of calling it: the same bits (clause graph-equals-eager). Keys are made of NewIdentity
  // and sizes.
  using WorkKey = std::vector<uint64_t>;
  virtual Status Repeatable(const WorkKey& /*key*/, const std::function<Status()>& work) {
    return work();
  }
  // A number that no one else gets from this backend.
  uint64_t NewIdentity() { return ++identities_; }
  // Whether Repeatable may record; false where the backend never does. On until it is set.
  virtual bool SetGraphs(bool /*on*/) { return false; }
  // How often Repeatable has replayed a record.
  virtual int64_t graph_replays() const { return 0; }

  // Memory. Allocate gives kResource when there is none; contents are undefined.
  virtual Result<Buffer> Allocate(size_t bytes) = 0;
  // Bytes that Allocate could give in all; absent where that is the machine's business.
  virtual Result<std::optional<uint64_t>> FreeBytes() { return std::optional<uint64_t>(); }
  virtual Status Zero(void* destination, size_t bytes) = 0;
  // Sets every byte. Here through a copy of host memory; a backend may know better.
  virtual Status Fill(void* destination, uint8_t byte, size_t bytes) {
    const std::vector<uint8_t> host(bytes, byte);
    return Upload(destination, host.data(), bytes);
  }
  virtual Status Upload(void* destination, const void* host, size_t bytes) = 0;
  virtual Status Download(void* host, const void* source, size_t bytes) = 0;
  // Between two places of the backend's memory that do not overlap.
  virtual Status Copy(void* destination, const void* source, size_t bytes) = 0;

  // kUnsupported for a model whose mixers have shapes that the backend's Attention, DeltaNet or
  // ConvSilu does not take: asked before weights are loaded.
  virtual Status CheckShapes(const AttentionGeometry& /*attention*/,
                             const DeltaNetGeometry& /*delta_net*/) {
    return {};
  }

  // Weights. Values widen to fp32 exactly (BF16, F16, F32); other types are kUnsupported.
  virtual Result<Buffer> LoadVector(const TensorView& tensor) = 0;
  virtual Result<std::unique_ptr<LinearWeight>> LoadLinear(const LinearSource& source) = 0;
  virtual Result<std::unique_ptr<EmbeddingTable>> LoadTable(const TensorView& tensor) = 0;

  // out[i] = table[ids[i]] widened to fp32. Every id is in range (the caller checks).
  virtual Status Embed(const EmbeddingTable& table, std::span<const int32_t> ids, Rows out) = 0;

  // y = x W^T + bias for x [rows, in_features], y [rows, out_features]. An EXL3 input is rotated
  // and rounded to fp16 once; kOutOfRange names the layer if a rotated input is not finite in fp16.
  virtual Status Linear(const LinearWeight& weight, ConstRows x, Rows y) = 0;
  // The same for several linears of one input, y[i] from weights[i]: the bits of Linear, in fewer
  // launches where the backend can.
  virtual Status Linears(std::span<const LinearWeight* const> weights, ConstRows x,
                         std::span<const Rows> y) {
    for (size_t i = 0; i < weights.size(); ++i) TRY(Linear(*weights[i], x, y[i]));
    return {};
  }

  // out[:, column .. column + x.cols) = x, row by row; the other columns keep what they hold.
  virtual Status CopyColumns(ConstRows x, int64_t column, Rows out) = 0;

  // x += y.
  virtual Status Add(Rows x, ConstRows y) = 0;

  // out = x * rsqrt(mean(x^2) + eps) * (1 + weight), per row; weight [cols].
  virtual Status RmsNorm(ConstRows x, const float* weight, float eps, Rows out) = 0;

  // x += y, then out = RmsNorm of x: the bits of Add and RmsNorm, in fewer launches where the
  // backend can. The three do not overlap.
  virtual Status AddRmsNorm(Rows x, ConstRows y, const float* weight, float eps, Rows out) {
    TRY(Add(x, y));
    return RmsNorm(x, weight, eps, out);
  }

  // out = silu(gate) * up.
  virtual Status SwiGlu(ConstRows gate, ConstRows up, Rows out) = 0;

  // Prepares attention for rows at positions *position.first, the next, ...:
  //   q = bf16(rope(norm(query)))  from q_gate [rows, heads * 2 * head_dim], per head [query |
  //   gate]; K = bf16(rope(norm(k))), V = bf16(v) stored in `kv` (as fp8 when kv.type says so).
  virtual Status AttentionInputs(const AttentionGeometry& geometry, const AttentionWeights& weights,
                                 const RowPosition& position, ConstRows q_gate, ConstRows k,
                                 ConstRows v, Rows q, const KvPages& kv) = 0;

  // Causal attention of row i over keys 0 .. *position.first + i of `kv`, then out *=
  // sigmoid(gate). Keys are cut at absolute positions: 512-key chunks of 64-key tiles, fp32 online
  // softmax inside a chunk, chunks merged in key order; probabilities are rounded to bf16 before V.
  virtual Status Attention(const AttentionGeometry& geometry, const RowPosition& position,
                           ConstRows q, ConstRows q_gate, const KvPages& kv, Rows out) = 0;

  // Depthwise causal convolution and SiLU. weight [channels, kernel], tap kernel-1 on the current
  // row; window [kernel-1, channels] holds the rows before the first, oldest first. window_out (may
  // alias window_in, or be null: nothing is kept) receives the window after the last row.
  virtual Status ConvSilu(const DeltaNetGeometry& geometry, const float* weight, ConstRows x,
                          const float* window_in, float* window_out, Rows out) = 0;

  // The gated delta rule, token by token. qkv [rows, q | k | v] after the convolution, a and b
  // [rows, value_heads]; state [value_heads, key_dim, value_dim]. state_out (may alias state_in, or
  // be null) receives the state after the last row.
  virtual Status DeltaNet(const DeltaNetGeometry& geometry, const DeltaNetWeights& weights,
                          ConstRows qkv, ConstRows a, ConstRows b, const float* state_in,
                          float* state_out, Rows out) = 0;

  // Per value head: out = o * rsqrt(mean(o^2) + eps) * weight * silu(z); weight [value_dim].
  virtual Status GatedNorm(const DeltaNetGeometry& geometry, const float* weight, ConstRows o,
                           ConstRows z, Rows out) = 0;

 private:
  uint64_t identities_ = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_BACKEND_H_
