// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/cpu/cpu_linear.h"
#include "engine/backend/cpu/draft_ops.h"
#include "engine/backend/cpu/mixer_ops.h"
#include "engine/backend/cpu/parallel.h"
#include "engine/backend/cpu/ref/norm.h"
#include "engine/backend/cpu/ref/pointwise.h"
#include "engine/backend/cpu/widen.h"
#include "engine/base/mapped_file.h"

namespace hallmark {
namespace {

constexpr size_t kAlignment = 64;

void FreeHost(void*, void* data, size_t) { ::operator delete (data, std::align_val_t{kAlignment}); }

class CpuTable : public EmbeddingTable {
 public:
  TensorView tensor;  // the mapped bytes themselves: rows are copied out as they are asked for
};

const MixerLoops& LoopsOf(CpuTier tier) {
#if defined(__x86_64__)
  if (tier >= CpuTier::kAvx512) return Avx512MixerLoops();
  if (tier == CpuTier::kAvx2) return Avx2MixerLoops();
#endif
  (void)tier;
  return kScalarMixerLoops;
}

class CpuBackend : public Backend {
 public:
  CpuBackend(CpuTier tier, int threads)
      : tier_(tier), loops_(LoopsOf(tier)), pool_(threads), draft_ops_(pool_) {}

  std::string name() const override { return "cpu"; }
  std::string tier() const override { return std::string(CpuTierName(tier_)); }
  DraftOps* draft_ops() override { return &draft_ops_; }

  Result<Buffer> Allocate(size_t bytes) override {
    if (bytes == 0) return Buffer();
    void* data = ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow);
    if (data == nullptr) {
      return Fail(Code::kResource, "no memory for " + std::to_string(bytes) + " bytes");
    }
    return Buffer(data, bytes, this, &FreeHost);
  }

  Status Zero(void* destination, size_t bytes) override {
    std::memset(destination, 0, bytes);
    return {};
  }
  Status Fill(void* destination, uint8_t byte, size_t bytes) override {
    std::memset(destination, byte, bytes);
    return {};
  }
  Status Upload(void* destination, const void* host, size_t bytes) override {
    std::memcpy(destination, host, bytes);
    return {};
  }
  Status Download(void* host, const void* source, size_t bytes) override {
    std::memcpy(host, source, bytes);
    return {};
  }

  Status Copy(void* destination, const void* source, size_t bytes) override {
    if (bytes > 0) std::memcpy(destination, source, bytes);
    return {};
  }

  Result<Buffer> LoadVector(const TensorView& tensor) override {
    const size_t count = static_cast<size_t>(tensor.elements());
    Buffer buffer = TRY(Allocate(count * sizeof(float)));
    TRY(WidenToFloat(tensor, 0, tensor.elements(), buffer.floats()));
    return buffer;
  }

  Result<std::unique_ptr<LinearWeight>> LoadLinear(const LinearSource& source) override {
    std::unique_ptr<LinearWeight> linear = TRY(CpuLinear::Load(source, tier_));
    return linear;
  }

  Result<std::unique_ptr<EmbeddingTable>> LoadTable(const TensorView& tensor) override {
    auto table = std::make_unique<CpuTable>();
    table->entries = tensor.shape[0];
    table->cols = tensor.shape[1];
    table->tensor = tensor;
    float first = 0.0f;
    TRY(WidenToFloat(tensor, 0, 1, &first));  // refuses a type that cannot be widened
    return std::unique_ptr<EmbeddingTable>(std::move(table));
  }

  Status Embed(const EmbeddingTable& table, std::span<const int32_t> ids, Rows out) override {
    const TensorView& tensor = static_cast<const CpuTable&>(table).tensor;
    for (size_t i = 0; i < ids.size(); ++i) {
      TRY(WidenToFloat(tensor, ids[i] * table.cols, table.cols,
                       out.data + static_cast<int64_t>(i) * out.cols));
    }
    return CheckIntact(tensor.bytes, tensor.file);  // rows come straight from the file
  }

  Status Linear(const LinearWeight& weight, ConstRows x, Rows y) override {
    return static_cast<const CpuLinear&>(weight).Run(x, y, pool_);
  }

  Status CopyColumns(ConstRows x, int64_t column, Rows out) override {
    for (int64_t row = 0; row < x.rows; ++row) {
      std::copy_n(x.data + row * x.cols, x.cols, out.data + row * out.cols + column);
    }
    return {};
  }

  Status Add(Rows x, ConstRows y) override {
    for (int64_t i = 0; i < x.rows * x.cols; ++i) x.data[i] += y.data[i];
    return {};
  }

  Status RmsNorm(ConstRows x, const float* weight, float eps, Rows out) override {
    for (int64_t row = 0; row < x.rows; ++row) {
      RefRmsNorm(x.data + row * x.cols, weight, x.cols, eps, out.data + row * out.cols);
    }
    return {};
  }

  Status SwiGlu(ConstRows gate, ConstRows up, Rows out) override {
    RefSwiGlu(gate.data, up.data, gate.rows * gate.cols, out.data);
    return {};
  }

  Status AttentionInputs(const AttentionGeometry& geometry, const AttentionWeights& weights,
                         const RowPosition& position, ConstRows q_gate, ConstRows k, ConstRows v,
                         Rows q, const KvPages& kv) override {
    CpuAttentionInputs(geometry, weights, *position.first, q_gate, k, v, q, kv, pool_);
    return {};
  }

  Status Attention(const AttentionGeometry& geometry, const RowPosition& position, ConstRows q,
                   ConstRows q_gate, const KvPages& kv, Rows out) override {
    CpuAttention(geometry, *position.first, q, q_gate, kv, out, loops_, pool_);
    return {};
  }

  Status ConvSilu(const DeltaNetGeometry& geometry, const float* weight, ConstRows x,
                  const float* window_in, float* window_out, Rows out) override {
    RefConvSilu(x.data, x.rows, x.cols, weight, geometry.conv_kernel, window_in, window_out,
                out.data);
    return {};
  }

  Status DeltaNet(const DeltaNetGeometry& geometry, const DeltaNetWeights& weights, ConstRows qkv,
                  ConstRows a, ConstRows b, const float* state_in, float* state_out,
                  Rows out) override {
    CpuDeltaNet(geometry, weights, qkv, a, b, state_in, state_out, out, loops_, pool_);
    return {};
  }

  Status GatedNorm(const DeltaNetGeometry& geometry, const float* weight, ConstRows o, ConstRows z,
                   Rows out) override {
    const int64_t dim = geometry.value_dim;
    for (int64_t i = 0; i < o.rows * geometry.value_heads; ++i) {
      RefGatedNorm(o.data + i * dim, z.data + i * dim, weight, dim, geometry.eps,
                   out.data + i * dim);
    }
    return {};
  }

 private:
  CpuTier tier_;
  const MixerLoops& loops_;
  ThreadPool pool_;
  CpuDraftOps draft_ops_;
};

}  // namespace

Result<std::unique_ptr<Backend>> MakeCpuBackend(const CpuBackendOptions& options) {
  constexpr int kMaxThreads = 256;
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return Fail(Code::kOutOfRange, "expected 0 to " + std::to_string(kMaxThreads) + " threads",
                {.flag = "--threads"});
  }
  const CpuTier tier = TRY(ChooseCpuTier(options.tier));
  const int threads = options.threads > 0 ? options.threads : DefaultThreads();
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(tier, threads));
}

}  // namespace hallmark
