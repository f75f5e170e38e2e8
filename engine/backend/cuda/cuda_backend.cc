// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/cuda/cuda_draft_ops.h"
#include "engine/backend/cuda/cuda_linear.h"
#include "engine/backend/cuda/cuda_table.h"
#include "engine/backend/cuda/execution.h"
#include "engine/backend/cuda/runtime_device.h"
#include "engine/backend/device_checks.h"
#include "engine/base/check.h"
#include "engine/base/sha256.h"
#include "kernels/exl3/fingerprint.h"
#include "kernels/mixers/attention.h"
#include "kernels/mixers/attention_inputs.h"
#include "kernels/mixers/conv.h"
#include "kernels/mixers/delta_net.h"
#include "kernels/mixers/gated_norm.h"
#include "kernels/rows/embed.h"
#include "kernels/rows/norm.h"
#include "kernels/rows/pointwise.h"

namespace hallmark {
namespace {

// Partial results of attention: more chunks at once than fit here are of little use.
constexpr size_t kAttentionScratch = size_t{64} << 20;

KvFormat FormatOf(KvType type) {
  return type == KvType::kBf16 ? KvFormat::kBf16 : KvFormat::kFp8E4m3;
}

AttentionShape ShapeOf(const AttentionGeometry& geometry) {
  return {.heads = geometry.heads, .kv_heads = geometry.kv_heads, .head_dim = geometry.head_dim};
}

KvPlace PlaceOf(const KvPages& kv, const RowPosition& position) {
  return {.pages = kv.pages, .offset = static_cast<int64_t>(kv.offset), .position = position.first};
}

int64_t Elements(ConstRows x) { return x.rows * x.cols; }

class CudaBackend : public Backend, private DeviceChecks {
 public:
  static Result<std::unique_ptr<Backend>> Create(std::unique_ptr<CudaDevice> owned,
                                                 CudaDevice& device,
                                                 const CudaBackendOptions& options) {
    auto backend = std::unique_ptr<CudaBackend>(new CudaBackend(std::move(owned), options));
    backend->execution_ = TRY(CudaExecution::Create(device));
    backend->execution_->arena().set_limit(options.device_bytes);
    backend->draft_ops_ = std::make_unique<CudaDraftOps>(*backend->execution_);
    const CudaDeviceFacts& facts = device.facts();
    backend->tier_ = "sm_" + std::to_string(facts.major) + std::to_string(facts.minor);
    backend->device_ = {
        .name = facts.name,
        .compute_capability = std::to_string(facts.major) + "." + std::to_string(facts.minor),
        .driver = CudaVersionText(facts.driver_version),
        .runtime = CudaVersionText(facts.runtime_version),
        .fingerprint = TRY(backend->Fingerprint())};
    return std::unique_ptr<Backend>(std::move(backend));
  }

  std::string name() const override { return "cuda"; }
  std::string tier() const override { return tier_; }
  std::optional<BackendDevice> device() const override { return device_; }
  DraftOps* draft_ops() override { return draft_ops_.get(); }
  DeviceChecks* device_checks() override { return this; }

  Status Finish() override { return execution_->Finish(); }
  Status Repeatable(const WorkKey& key, const std::function<Status()>& work) override {
    return execution_->graphs().Run(key, execution_->scratch_moves(), work);
  }
  bool SetGraphs(bool on) override {
    execution_->graphs().set_enabled(on);
    return true;
  }
  int64_t graph_replays() const override { return execution_->graphs().replays(); }
  Result<Buffer> Allocate(size_t bytes) override { return execution_->arena().Allocate(bytes); }
  Result<std::optional<uint64_t>> FreeBytes() override {
    return std::optional<uint64_t>(TRY(execution_->stream().device().FreeBytes()));
  }
  Status Zero(void* destination, size_t bytes) override {
    return execution_->stream().Fill(destination, 0, bytes);
  }
  Status Fill(void* destination, uint8_t byte, size_t bytes) override {
    return execution_->stream().Fill(destination, byte, bytes);
  }
  Status Upload(void* destination, const void* host, size_t bytes) override {
    return execution_->staging().Send(destination, host, bytes);
  }
  Status Download(void* host, const void* source, size_t bytes) override {
    return execution_->Download(host, source, bytes);
  }
  Status Copy(void* destination, const void* source, size_t bytes) override {
    return execution_->stream().CopyOnDevice(destination, source, bytes);
  }

  Result<Buffer> LoadVector(const TensorView& tensor) override {
    return LoadWidened(tensor, *execution_);
  }
  Result<std::unique_ptr<LinearWeight>> LoadLinear(const LinearSource& source) override {
    std::unique_ptr<LinearWeight> linear = TRY(CudaLinear::Load(source, *execution_));
    return linear;
  }
  Status CheckShapes(const AttentionGeometry& attention, const DeltaNetGeometry& delta) override {
    const auto refuse = [](const std::string& what, int64_t found, const std::string& expected) {
      return Fail(Code::kUnsupported,
                  "the model's " + what + " is " + std::to_string(found) +
                      ", the CUDA backend has kernels for " + expected + "; --device cpu runs it",
                  {.flag = "--device"});
    };
    if (attention.head_dim != 128 && attention.head_dim != 256) {
      return refuse("head_dim", attention.head_dim, "128 and 256");
    }
    if (delta.key_dim != kDeltaNetHeadDim) {
      return refuse("linear_key_head_dim", delta.key_dim, std::to_string(kDeltaNetHeadDim));
    }
    if (delta.value_dim != kDeltaNetHeadDim) {
      return refuse("linear_value_head_dim", delta.value_dim, std::to_string(kDeltaNetHeadDim));
    }
    if (delta.conv_kernel < kConvMinTaps || delta.conv_kernel > kConvMaxTaps) {
      return refuse("linear_conv_kernel_dim", delta.conv_kernel,
                    std::to_string(kConvMinTaps) + " to " + std::to_string(kConvMaxTaps));
    }
    return {};
  }
  Result<std::unique_ptr<EmbeddingTable>> LoadTable(const TensorView& tensor) override {
    std::unique_ptr<EmbeddingTable> table =
        TRY(CudaTable::Load(tensor, options_.mapped_tables, *execution_));
    return table;
  }

  Status Embed(const EmbeddingTable& table, std::span<const int32_t> ids, Rows out) override {
    return static_cast<const CudaTable&>(table).Embed(ids, out, *execution_);
  }
  Status Linear(const LinearWeight& weight, ConstRows x, Rows y) override {
    return static_cast<const CudaLinear&>(weight).Run(x, y, *execution_);
  }
  Status Linears(std::span<const LinearWeight* const> weights, ConstRows x,
                 std::span<const Rows> y) override {
    std::vector<const CudaLinear*> linears;
    for (const LinearWeight* weight : weights) {
      linears.push_back(static_cast<const CudaLinear*>(weight));
    }
    return CudaLinear::RunTogether(linears, x, y, *execution_);
  }

  Status CopyColumns(ConstRows x, int64_t column, Rows out) override {
    return execution_->Launch("LaunchCopyColumns", [&](cudaStream_t stream) {
      return LaunchCopyColumns(x.data, x.rows, x.cols, column, out.cols, out.data, stream);
    });
  }
  Status Add(Rows x, ConstRows y) override {
    return execution_->Launch("LaunchAdd", [&](cudaStream_t stream) {
      return LaunchAdd(x.data, y.data, Elements(x), stream);
    });
  }
  Status RmsNorm(ConstRows x, const float* weight, float eps, Rows out) override {
    CHECK(out.cols == x.cols);
    return execution_->Launch("LaunchRmsNorm", [&](cudaStream_t stream) {
      return LaunchRmsNorm(x.data, x.rows, x.cols, weight, eps, out.data, stream);
    });
  }
  Status AddRmsNorm(Rows x, ConstRows y, const float* weight, float eps, Rows out) override {
    CHECK(y.cols == x.cols && out.cols == x.cols);
    if (x.cols > kMostAddNormCols) return Backend::AddRmsNorm(x, y, weight, eps, out);
    return execution_->Launch("LaunchAddRmsNorm", [&](cudaStream_t stream) {
      return LaunchAddRmsNorm(x.data, y.data, x.rows, x.cols, weight, eps, out.data, stream);
    });
  }
  Status SwiGlu(ConstRows gate, ConstRows up, Rows out) override {
    return execution_->Launch("LaunchSwiGlu", [&](cudaStream_t stream) {
      return LaunchSwiGlu(gate.data, up.data, Elements(gate), out.data, stream);
    });
  }

  Status AttentionInputs(const AttentionGeometry& geometry, const AttentionWeights& weights,
                         const RowPosition& position, ConstRows q_gate, ConstRows k, ConstRows v,
                         Rows q, const KvPages& kv) override {
    const AttentionInputWeights small{.q_norm = weights.q_norm,
                                      .k_norm = weights.k_norm,
                                      .inv_freq = weights.inv_freq,
                                      .rotary_dim = geometry.rotary_dim,
                                      .eps = geometry.eps};
    return execution_->Launch("LaunchAttentionInputs", [&](cudaStream_t stream) {
      return LaunchAttentionInputs(ShapeOf(geometry), FormatOf(kv.type), small,
                                   PlaceOf(kv, position), q.rows, q_gate.data, k.data, v.data,
                                   q.data, stream);
    });
  }

  Status Attention(const AttentionGeometry& geometry, const RowPosition& position, ConstRows q,
                   ConstRows q_gate, const KvPages& kv, Rows out) override {
    if (q.rows == 0) return {};
    // As many chunks at once as there are, or as fit; the cut reaches no bit.
    const auto bytes_for = [&](int64_t chunks) {
      return AttentionWorkspaceBytes(q.rows, geometry.heads, geometry.head_dim, chunks);
    };
    int64_t chunks = AttentionChunks(position.limit);
    while (chunks > 1 && bytes_for(chunks) > kAttentionScratch) chunks = (chunks + 1) / 2;
    const size_t bytes = bytes_for(chunks);
    void* workspace = TRY(execution_->attention().Reserve(bytes));
    return execution_->Launch("LaunchAttention", [&](cudaStream_t stream) {
      return LaunchAttention(ShapeOf(geometry), FormatOf(kv.type), PlaceOf(kv, position),
                             position.limit, q.rows, q.data, q_gate.data, chunks, workspace, bytes,
                             out.data, stream);
    });
  }

  Status ConvSilu(const DeltaNetGeometry& geometry, const float* weight, ConstRows x,
                  const float* window_in, float* window_out, Rows out) override {
    return execution_->Launch("LaunchConvSilu", [&](cudaStream_t stream) {
      return LaunchConvSilu(x.data, x.rows, x.cols, weight, geometry.conv_kernel, window_in,
                            window_out, out.data, stream);
    });
  }

  Status DeltaNet(const DeltaNetGeometry& geometry, const DeltaNetWeights& weights, ConstRows qkv,
                  ConstRows a, ConstRows b, const float* state_in, float* state_out,
                  Rows out) override {
    CHECK(geometry.key_dim == kDeltaNetHeadDim && geometry.value_dim == kDeltaNetHeadDim);
    const DeltaNetHeads heads{.key_heads = geometry.key_heads, .value_heads = geometry.value_heads};
    const DeltaNetInputs inputs{.qkv = qkv.data,
                                .a = a.data,
                                .b = b.data,
                                .a_log = weights.a_log,
                                .dt_bias = weights.dt_bias};
    const size_t bytes =
        static_cast<size_t>(DeltaNetScratchFloats(heads, qkv.rows)) * sizeof(float);
    auto* scratch = static_cast<float*>(TRY(execution_->delta_net().Reserve(bytes)));
    return execution_->Launch("LaunchDeltaNet", [&](cudaStream_t stream) {
      return LaunchDeltaNet(heads, inputs, qkv.rows, state_in, state_out, scratch, out.data,
                            stream);
    });
  }

  Status GatedNorm(const DeltaNetGeometry& geometry, const float* weight, ConstRows o, ConstRows z,
                   Rows out) override {
    return execution_->Launch("LaunchGatedNorm", [&](cudaStream_t stream) {
      return LaunchGatedNorm(o.data, z.data, weight, o.rows * geometry.value_heads,
                             geometry.value_dim, geometry.eps, out.data, stream);
    });
  }

 private:
  CudaBackend(std::unique_ptr<CudaDevice> owned, const CudaBackendOptions& options)
      : options_(options), owned_(std::move(owned)) {}

  Result<std::unique_ptr<Backend>> MakeBeside(TablePlacement tables) override {
    return Create(nullptr, execution_->stream().device(),
                  {.mapped_tables = tables == TablePlacement::kMapped});
  }
  Result<SplitCounters> ReadSplitCounters() override {
    const SplitWorkspace& split = execution_->split();
    const Buffer& memory = split.counters();
    SplitCounters counters{.values = std::vector<int32_t>(memory.bytes() / sizeof(int32_t)),
                           .launches = split.launches(),
                           .growths = split.growths()};
    TRY(Download(counters.values.data(), memory.data(), memory.bytes()));
    return counters;
  }

  Result<std::string> Fingerprint() {
    std::vector<uint32_t> results(kFingerprintResults);
    const size_t bytes = results.size() * sizeof(uint32_t);
    const Buffer memory = TRY(Allocate(bytes));
    TRY(execution_->Launch("LaunchFingerprint", [&](cudaStream_t stream) {
      return LaunchFingerprint(static_cast<uint32_t*>(memory.data()), stream);
    }));
    TRY(Download(results.data(), memory.data(), bytes));
    return Sha256Hex(std::as_bytes(std::span(results)));
  }

  const CudaBackendOptions options_;
  std::string tier_;
  BackendDevice device_;
  // In the order they depend on each other: the last goes first.
  std::unique_ptr<CudaDevice> owned_;
  std::unique_ptr<CudaExecution> execution_;
  std::unique_ptr<CudaDraftOps> draft_ops_;
};

}  // namespace

Result<std::unique_ptr<Backend>> MakeCudaBackend(const CudaBackendOptions& options) {
  std::unique_ptr<CudaDevice> device = TRY(OpenRuntimeDevice());
  CudaDevice& borrowed = *device;
  return CudaBackend::Create(std::move(device), borrowed, options);
}

Result<std::unique_ptr<Backend>> MakeCudaBackend(CudaDevice& device,
                                                 const CudaBackendOptions& options) {
  return CudaBackend::Create(nullptr, device, options);
}

}  // namespace hallmark
