// SPDX-License-Identifier: Apache-2.0
#include "engine/model/forward.h"

#include <algorithm>
#include <string>

#include "engine/base/check.h"

namespace hallmark {
namespace {

// Rows of logits computed at once: bounds the buffer (vocabularies are large).
constexpr int64_t kHeadRows = 16;

Result<Buffer> AllocateRows(Backend& backend, int64_t rows, int64_t cols) {
  return backend.Allocate(static_cast<size_t>(rows * cols) * sizeof(float));
}

}  // namespace

Result<ForwardPass> ForwardPass::Create(const Model& model, int64_t max_rows) {
  if (max_rows < 1 || max_rows > kMaxRows) {
    return Fail(Code::kOutOfRange, "expected 1 to " + std::to_string(kMaxRows) + " rows a call");
  }
  ForwardPass pass(model);
  pass.max_rows_ = max_rows;
  const ModelConfig& config = model.config;
  const AttentionGeometry& attention = model.attention;
  const DeltaNetGeometry& delta = model.delta_net;
  const int64_t queries = int64_t{1} * attention.heads * attention.head_dim;
  const int64_t keys = int64_t{1} * attention.kv_heads * attention.head_dim;
  auto allocate = [&](Buffer& buffer, int64_t cols) -> Status {
    buffer = TRY(AllocateRows(*model.backend, max_rows, cols));
    return {};
  };
  TRY(allocate(pass.hidden_, config.hidden));
  TRY(allocate(pass.normed_, config.hidden));
  TRY(allocate(pass.mixed_, config.hidden));
  TRY(allocate(pass.q_gate_, 2 * queries));
  TRY(allocate(pass.q_, queries));
  TRY(allocate(pass.k_, keys));
  TRY(allocate(pass.v_, keys));
  TRY(allocate(pass.attended_, queries));
  TRY(allocate(pass.qkv_, delta.channels()));
  TRY(allocate(pass.conv_, delta.channels()));
  TRY(allocate(pass.z_, delta.value_width()));
  TRY(allocate(pass.a_, delta.value_heads));
  TRY(allocate(pass.b_, delta.value_heads));
  TRY(allocate(pass.rule_, delta.value_width()));
  TRY(allocate(pass.gate_, config.intermediate));
  TRY(allocate(pass.up_, config.intermediate));
  pass.logits_ = TRY(AllocateRows(*model.backend, std::min(kHeadRows, max_rows), config.vocab));
  return pass;
}

Result<ForwardOutput> ForwardPass::Run(Sequence& sequence, std::span<const int32_t> ids,
                                       const ForwardRequest& request) {
  const ModelConfig& config = model_->config;
  if (sequence.failed_) {
    return Fail(Code::kInternal, "the sequence was lost in an earlier failed pass");
  }
  if (ids.empty()) return Fail(Code::kOutOfRange, "expected at least one token id");
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= config.vocab) {
      return Fail(Code::kOutOfRange, "token id " + std::to_string(ids[i]) + " at index " +
                                         std::to_string(i) + " is outside the vocabulary of " +
                                         std::to_string(config.vocab));
    }
  }
  const int64_t end = sequence.position() + static_cast<int64_t>(ids.size());
  if (end > config.max_positions) {
    return Fail(Code::kOutOfRange, std::to_string(end) + " positions, the model has " +
                                       std::to_string(config.max_positions));
  }
  for (const int tap : request.taps) {
    if (tap < 0 || tap > static_cast<int>(model_->layers.size())) {
      return Fail(Code::kOutOfRange, "no layer output " + std::to_string(tap));
    }
  }
  TRY(sequence.Reserve(end));

  ForwardOutput output;
  output.taps.resize(request.taps.size());
  sequence.failed_ = true;  // until the whole call has gone through
  for (size_t done = 0; done < ids.size();) {
    const size_t count = std::min(ids.size() - done, static_cast<size_t>(max_rows_));
    const bool last = done + count == ids.size();
    TRY(RunRows(sequence, ids.subspan(done, count), request, last, output));
    done += count;
  }
  sequence.failed_ = false;
  return output;
}

Status ForwardPass::RunRows(Sequence& sequence, std::span<const int32_t> ids,
                            const ForwardRequest& request, bool last_piece, ForwardOutput& output) {
  Backend& backend = *model_->backend;
  const int64_t rows = static_cast<int64_t>(ids.size());
  const int64_t width = model_->config.hidden;
  const Rows hidden = Scratch(hidden_, rows, width);
  const Rows normed = Scratch(normed_, rows, width);
  const Rows mixed = Scratch(mixed_, rows, width);
  auto tap = [&](int index) -> Status {
    for (size_t i = 0; i < request.taps.size(); ++i) {
      if (request.taps[i] != index) continue;
      std::vector<float>& rows_out = output.taps[i];
      const size_t before = rows_out.size();
      rows_out.resize(before + static_cast<size_t>(rows * width));
      TRY(backend.Download(rows_out.data() + before, hidden.data,
                           static_cast<size_t>(rows * width) * sizeof(float)));
    }
    return {};
  };

  TRY(backend.Embed(*model_->embedding, ids, hidden));
  TRY(tap(0));
  for (size_t i = 0; i < model_->layers.size(); ++i) {
    const ModelLayer& layer = model_->layers[i];
    Sequence::Layer& state = sequence.layers_[i];
    TRY(backend.RmsNorm(hidden, layer.input_norm.floats(), model_->config.eps, normed));
    if (layer.kind == LayerKind::kAttention) {
      TRY(RunAttention(layer, state, sequence.position_, sequence.kv_type_, rows));
    } else {
      TRY(RunDeltaNet(layer, state, rows));
    }
    TRY(backend.Add(hidden, mixed));
    TRY(backend.RmsNorm(hidden, layer.post_norm.floats(), model_->config.eps, normed));
    TRY(RunMlp(layer, rows));
    TRY(backend.Add(hidden, mixed));
    TRY(tap(static_cast<int>(i) + 1));
  }
  sequence.position_ += rows;

  if (request.logits == LogitRows::kAll) return RunHead(0, rows, output);
  if (request.logits == LogitRows::kLast && last_piece) return RunHead(rows - 1, 1, output);
  return {};
}

// Each mixer and the MLP read `normed_` and leave their residual term in `mixed_`.
Status ForwardPass::RunAttention(const ModelLayer& layer, Sequence::Layer& state, int64_t position,
                                 KvType kv_type, int64_t rows) {
  Backend& backend = *model_->backend;
  const AttentionLayer& weights = layer.attention;
  const AttentionGeometry& geometry = model_->attention;
  const int64_t queries = int64_t{1} * geometry.heads * geometry.head_dim;
  const int64_t keys = int64_t{1} * geometry.kv_heads * geometry.head_dim;
  const Rows normed = Scratch(normed_, rows, model_->config.hidden);
  const Rows q_gate = Scratch(q_gate_, rows, 2 * queries);
  const Rows q = Scratch(q_, rows, queries);
  const Rows k = Scratch(k_, rows, keys);
  const Rows v = Scratch(v_, rows, keys);
  const Rows attended = Scratch(attended_, rows, queries);
  const KvPages pages{kv_type, state.attention.addresses};
  const AttentionWeights small{weights.q_norm.floats(), weights.k_norm.floats(),
                               model_->inv_freq.floats()};
  TRY(backend.Linear(*weights.q, normed, q_gate));
  TRY(backend.Linear(*weights.k, normed, k));
  TRY(backend.Linear(*weights.v, normed, v));
  TRY(backend.AttentionInputs(geometry, small, position, q_gate, k, v, q, pages));
  TRY(backend.Attention(geometry, position, q, q_gate, pages, attended));
  return backend.Linear(*weights.o, attended, Scratch(mixed_, rows, model_->config.hidden));
}

Status ForwardPass::RunDeltaNet(const ModelLayer& layer, Sequence::Layer& state, int64_t rows) {
  Backend& backend = *model_->backend;
  const DeltaNetLayer& weights = layer.delta_net;
  const DeltaNetGeometry& geometry = model_->delta_net;
  const Rows normed = Scratch(normed_, rows, model_->config.hidden);
  const Rows qkv = Scratch(qkv_, rows, geometry.channels());
  const Rows conv = Scratch(conv_, rows, geometry.channels());
  const Rows z = Scratch(z_, rows, geometry.value_width());
  const Rows a = Scratch(a_, rows, geometry.value_heads);
  const Rows b = Scratch(b_, rows, geometry.value_heads);
  const Rows rule = Scratch(rule_, rows, geometry.value_width());
  float* window = state.delta_net.window.floats();
  float* matrix = state.delta_net.state.floats();
  const DeltaNetWeights small{weights.a_log.floats(), weights.dt_bias.floats()};
  TRY(backend.Linear(*weights.qkv, normed, qkv));
  TRY(backend.Linear(*weights.z, normed, z));
  TRY(backend.Linear(*weights.a, normed, a));
  TRY(backend.Linear(*weights.b, normed, b));
  TRY(backend.ConvSilu(geometry, weights.conv.floats(), qkv, window, window, conv));
  TRY(backend.DeltaNet(geometry, small, conv, a, b, matrix, matrix, rule));
  TRY(backend.GatedNorm(geometry, weights.norm.floats(), rule, z, rule));
  return backend.Linear(*weights.out, rule, Scratch(mixed_, rows, model_->config.hidden));
}

Status ForwardPass::RunMlp(const ModelLayer& layer, int64_t rows) {
  Backend& backend = *model_->backend;
  const Rows normed = Scratch(normed_, rows, model_->config.hidden);
  const Rows gate = Scratch(gate_, rows, model_->config.intermediate);
  const Rows up = Scratch(up_, rows, model_->config.intermediate);
  TRY(backend.Linear(*layer.gate, normed, gate));
  TRY(backend.Linear(*layer.up, normed, up));
  TRY(backend.SwiGlu(gate, up, gate));
  return backend.Linear(*layer.down, gate, Scratch(mixed_, rows, model_->config.hidden));
}

Status ForwardPass::RunHead(int64_t first_row, int64_t rows, ForwardOutput& output) {
  Backend& backend = *model_->backend;
  const int64_t width = model_->config.hidden;
  const int64_t vocab = model_->config.vocab;
  const Rows hidden = Scratch(hidden_, max_rows_, width);
  for (int64_t done = 0; done < rows;) {
    const int64_t count = std::min({rows - done, kHeadRows, max_rows_});
    const Rows normed = Scratch(normed_, count, width);
    const Rows logits = Scratch(logits_, count, vocab);
    TRY(backend.RmsNorm(hidden.Slice(first_row + done, count), model_->final_norm.floats(),
                        model_->config.eps, normed));
    TRY(backend.Linear(*model_->head, normed, logits));
    const size_t before = output.logits.size();
    output.logits.resize(before + static_cast<size_t>(count * vocab));
    TRY(backend.Download(output.logits.data() + before, logits.data,
                         static_cast<size_t>(count * vocab) * sizeof(float)));
    done += count;
  }
  return {};
}

}  // namespace hallmark
