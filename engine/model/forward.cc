// SPDX-License-Identifier: Apache-2.0
#include "engine/model/forward.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "engine/base/check.h"

namespace hallmark {
namespace {

// What a key of repeatable work begins with.
enum class Work : uint64_t { kLayers, kCommit };

// A bound on positions that stays the same for many rounds, so that they repeat.
int64_t RoundedLimit(int64_t end) {
  constexpr uint64_t kLeast = 512;
  return static_cast<int64_t>(std::max(kLeast, std::bit_ceil(static_cast<uint64_t>(end))));
}

Rows View(const Buffer& buffer, int64_t rows, int64_t cols) {
  return {buffer.floats(), rows, cols};
}

Status CheckTaps(const Model& model, std::span<const int> taps) {
  for (const int tap : taps) {
    if (tap < 0 || tap > static_cast<int>(model.layers.size())) {
      return Fail(Code::kOutOfRange, "no layer output " + std::to_string(tap));
    }
  }
  return {};
}

}  // namespace

Result<ForwardPass> ForwardPass::Create(const Model& model, int64_t max_rows, std::vector<int> taps,
                                        const ScratchOptions& scratch) {
  if (max_rows < 1 || max_rows > kMaxRows) {
    return Fail(Code::kOutOfRange, "expected 1 to " + std::to_string(kMaxRows) + " rows a call");
  }
  TRY(CheckTaps(model, taps));
  ForwardPass pass(model);
  pass.identity_ = model.backend->NewIdentity();
  pass.max_rows_ = max_rows;
  pass.tap_indices_ = std::move(taps);
  pass.scratch_ = scratch;
  pass.layout_ = LayOutScratch(model.config, max_rows,
                               static_cast<int64_t>(pass.tap_indices_.size()), scratch.overlap);
  Backend& backend = *model.backend;
  pass.positions_ = TRY(backend.Allocate(static_cast<size_t>(max_rows) * sizeof(int64_t)));
  pass.shared_ = TRY(backend.Allocate(pass.layout_.shared_bytes));
  for (size_t i = 0; i < kScratchParts; ++i) {
    const ScratchSlot& slot = pass.layout_.slots[i];
    if (slot.phase) {
      pass.places_[i] = pass.shared_.floats() + slot.offset / sizeof(float);
    } else {
      pass.buffers_[i] = TRY(backend.Allocate(slot.bytes));
      pass.places_[i] = pass.buffers_[i].floats();
    }
  }
  return pass;
}

Status ForwardPass::CheckSlice(const PassSlice& slice) const {
  const ModelConfig& config = model_->config;
  if (slice.sequence->failed_) {
    return Fail(Code::kInternal, "the sequence was lost in an earlier failed pass");
  }
  if (slice.ids.empty()) return Fail(Code::kOutOfRange, "expected at least one token id");
  for (size_t i = 0; i < slice.ids.size(); ++i) {
    if (slice.ids[i] < 0 || slice.ids[i] >= config.vocab) {
      return Fail(Code::kOutOfRange, "token id " + std::to_string(slice.ids[i]) + " at index " +
                                         std::to_string(i) + " is outside the vocabulary of " +
                                         std::to_string(config.vocab));
    }
  }
  const int64_t end = slice.sequence->position() + static_cast<int64_t>(slice.ids.size());
  if (end > config.max_positions) {
    return Fail(Code::kOutOfRange, std::to_string(end) + " positions, the model has " +
                                       std::to_string(config.max_positions));
  }
  return {};
}

Result<ForwardOutput> ForwardPass::Run(Sequence& sequence, std::span<const int32_t> ids,
                                       const ForwardRequest& request) {
  TRY(CheckSlice({.sequence = &sequence, .ids = ids}));
  TRY(CheckTaps(*model_, request.taps));
  TRY(sequence.Reserve(sequence.position() + static_cast<int64_t>(ids.size())));
  ForwardOutput output;
  output.taps.resize(request.taps.size());
  sequence.failed_ = true;  // until the whole call has gone through
  for (size_t done = 0; done < ids.size();) {
    const size_t count = std::min(ids.size() - done, static_cast<size_t>(max_rows_));
    const PassSlice piece{.sequence = &sequence, .ids = ids.subspan(done, count)};
    TRY(RunPass({&piece, 1}, &request, &output));
    done += count;
    const int64_t rows = static_cast<int64_t>(count);
    std::vector<HeadRow> heads;
    if (request.logits == LogitRows::kAll) {
      for (int64_t row = 0; row < rows; ++row) heads.push_back({row, &output.logits});
    } else if (request.logits == LogitRows::kLast && done == ids.size()) {
      heads.push_back({rows - 1, &output.logits});
    }
    TRY(RunHead(heads));
  }
  sequence.failed_ = false;
  return output;
}

Result<std::vector<std::vector<float>>> ForwardPass::RunSlices(std::span<const PassSlice> slices) {
  int64_t rows = 0;
  for (const PassSlice& slice : slices) {
    TRY(CheckSlice(slice));
    const int64_t count = static_cast<int64_t>(slice.ids.size());
    if (slice.window != nullptr) CHECK(count <= slice.window->max_rows_);
    rows += count;
  }
  if (rows < 1 || rows > max_rows_) {
    return Fail(Code::kOutOfRange, std::to_string(rows) + " rows in one pass, expected 1 to " +
                                       std::to_string(max_rows_));
  }
  for (const PassSlice& slice : slices) {
    Sequence& sequence = *slice.sequence;
    TRY(sequence.Reserve(sequence.position_ + static_cast<int64_t>(slice.ids.size())));
    if (slice.window != nullptr) slice.window->rows_ = 0;
  }
  for (const PassSlice& slice : slices) slice.sequence->failed_ = slice.window == nullptr;
  TRY(RunPass(slices, nullptr, nullptr));
  std::vector<std::vector<float>> logits(slices.size());
  std::vector<HeadRow> heads;
  int64_t end = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    int64_t row = end;
    end += static_cast<int64_t>(slices[i].ids.size());
    if (slices[i].logits == LogitRows::kNone) row = end;
    if (slices[i].logits == LogitRows::kLast) row = end - 1;
    for (; row < end; ++row) heads.push_back({row, &logits[i]});
  }
  TRY(RunHead(heads));
  for (const PassSlice& slice : slices) {
    slice.sequence->failed_ = false;
    if (slice.window == nullptr) continue;
    slice.window->rows_ = static_cast<int64_t>(slice.ids.size());
    slice.window->position_ = slice.sequence->position_;
  }
  return logits;
}

Status ForwardPass::Commit(Sequence& sequence, VerifyWindow& window, int64_t rows) {
  CHECK(rows >= 0 && rows <= window.rows_ && window.position_ == sequence.position_);
  CHECK(rows <= max_rows_);
  window.rows_ = 0;
  if (rows == 0) return {};
  sequence.failed_ = true;  // until every layer has moved on
  const Backend::WorkKey key = {static_cast<uint64_t>(Work::kCommit), identity_, sequence.identity_,
                                window.identity_, static_cast<uint64_t>(rows)};
  TRY(model_->backend->Repeatable(key, [&] { return Replay(sequence, window, rows); }));
  sequence.position_ += rows;
  sequence.failed_ = false;
  return {};
}

Status ForwardPass::Replay(const Sequence& sequence, const VerifyWindow& window, int64_t rows) {
  Backend& backend = *model_->backend;
  const DeltaNetGeometry& geometry = model_->delta_net;
  const Rows conv = Scratch(ScratchPart::kConv, rows);
  const Rows rule = Scratch(ScratchPart::kRule, rows);
  TRY(EndPhase());
  for (size_t i = 0; i < model_->layers.size(); ++i) {
    const ModelLayer& layer = model_->layers[i];
    if (layer.kind != LayerKind::kDeltaNet) continue;  // its keys and values are in place
    const VerifyWindow::Record& record = window.records_[i];
    const Sequence::DeltaNetState& state = sequence.layers_[i].delta_net;
    const DeltaNetWeights small{layer.delta_net.a_log.floats(), layer.delta_net.dt_bias.floats()};
    TRY(backend.ConvSilu(geometry, layer.delta_net.conv.floats(),
                         View(record.qkv, rows, geometry.channels()), state.window.floats(),
                         state.window.floats(), conv));
    TRY(backend.DeltaNet(geometry, small, conv, View(record.a, rows, geometry.value_heads),
                         View(record.b, rows, geometry.value_heads), state.state.floats(),
                         state.state.floats(), rule));
  }
  return {};
}

// The buffers of the phase that has run are dead, whatever comes next.
Status ForwardPass::EndPhase() {
  constexpr uint8_t kNanByte = 0xFF;  // four of them are a NaN
  if (!scratch_.poison) return {};
  return model_->backend->Fill(shared_.data(), kNanByte, shared_.bytes());
}

Status ForwardPass::Tap(int index, Rows hidden, const ForwardRequest* request,
                        ForwardOutput* host_taps) {
  Backend& backend = *model_->backend;
  const int64_t width = model_->config.hidden;
  for (size_t i = 0; i < tap_indices_.size(); ++i) {
    if (tap_indices_[i] != index) continue;
    const Rows all = Scratch(ScratchPart::kTaps, hidden.rows);
    TRY(backend.CopyColumns(hidden, static_cast<int64_t>(i) * width, all));
  }
  if (request == nullptr) return {};
  for (size_t i = 0; i < request->taps.size(); ++i) {
    if (request->taps[i] != index) continue;
    std::vector<float>& rows_out = host_taps->taps[i];
    const size_t before = rows_out.size();
    const size_t count = static_cast<size_t>(hidden.rows * width);
    rows_out.resize(before + count);
    TRY(backend.Download(rows_out.data() + before, hidden.data, count * sizeof(float)));
  }
  return {};
}

Status ForwardPass::RunPass(std::span<const PassSlice> slices, const ForwardRequest* request,
                            ForwardOutput* host_taps) {
  Backend& backend = *model_->backend;
  std::vector<int32_t> ids;
  std::vector<int64_t> firsts;
  bool repeats = request == nullptr;  // the rows of rounds come again, those of prompts do not
  for (const PassSlice& slice : slices) {
    ids.insert(ids.end(), slice.ids.begin(), slice.ids.end());
    firsts.push_back(slice.sequence->position_);
    repeats = repeats && (slice.window != nullptr || slice.ids.size() == 1);
  }
  std::vector<RowPosition> positions;
  Backend::WorkKey key = {static_cast<uint64_t>(Work::kLayers), identity_};
  for (size_t i = 0; i < slices.size(); ++i) {
    const PassSlice& slice = slices[i];
    const auto count = static_cast<int64_t>(slice.ids.size());
    const int64_t end = firsts[i] + count;
    positions.push_back(
        {static_cast<const int64_t*>(positions_.data()) + i, repeats ? RoundedLimit(end) : end});
    key.insert(key.end(),
               {slice.sequence->identity_, slice.window == nullptr ? 0 : slice.window->identity_,
                static_cast<uint64_t>(count), static_cast<uint64_t>(positions.back().limit)});
  }
  const int64_t rows = static_cast<int64_t>(ids.size());
  const Rows hidden = Scratch(ScratchPart::kHidden, rows);
  taps_ = Scratch(ScratchPart::kTaps, rows);
  TRY(backend.Upload(positions_.data(), firsts.data(), firsts.size() * sizeof(int64_t)));
  TRY(EndPhase());
  TRY(backend.Embed(*model_->embedding, ids, hidden));
  const auto layers = [&] { return RunLayers(slices, positions, request, host_taps); };
  TRY(repeats ? backend.Repeatable(key, layers) : layers());
  for (const PassSlice& slice : slices) {
    if (slice.window == nullptr) {
      slice.sequence->position_ += static_cast<int64_t>(slice.ids.size());
    }
  }
  return {};
}

// Without `request` nothing here waits for the backend: the work can be recorded.
Status ForwardPass::RunLayers(std::span<const PassSlice> slices,
                              std::span<const RowPosition> positions, const ForwardRequest* request,
                              ForwardOutput* host_taps) {
  Backend& backend = *model_->backend;
  const int64_t rows = taps_.rows;
  const Rows hidden = Scratch(ScratchPart::kHidden, rows);
  const Rows normed = Scratch(ScratchPart::kNormed, rows);
  const Rows mixed = Scratch(ScratchPart::kMixed, rows);
  const float eps = model_->config.eps;
  TRY(Tap(0, hidden, request, host_taps));
  TRY(backend.RmsNorm(hidden, model_->layers[0].input_norm.floats(), eps, normed));
  for (size_t i = 0; i < model_->layers.size(); ++i) {
    const ModelLayer& layer = model_->layers[i];
    if (layer.kind == LayerKind::kAttention) {
      TRY(RunAttention(layer, i, slices, positions, rows));
    } else {
      TRY(RunDeltaNet(layer, i, slices, rows));
    }
    TRY(EndPhase());
    TRY(backend.AddRmsNorm(hidden, mixed, layer.post_norm.floats(), eps, normed));
    TRY(RunMlp(layer, rows));
    TRY(EndPhase());
    if (i + 1 < model_->layers.size()) {
      const Buffer& next = model_->layers[i + 1].input_norm;
      TRY(backend.AddRmsNorm(hidden, mixed, next.floats(), eps, normed));
    } else {
      TRY(backend.Add(hidden, mixed));
    }
    TRY(Tap(static_cast<int>(i) + 1, hidden, request, host_taps));
  }
  return {};
}

// Each mixer and the MLP read `normed_` and leave their residual term in `mixed_`. Products go over
// the rows of all slices at once; what reads a sequence's state goes slice by slice.
Status ForwardPass::RunAttention(const ModelLayer& layer, size_t index,
                                 std::span<const PassSlice> slices,
                                 std::span<const RowPosition> positions, int64_t rows) {
  Backend& backend = *model_->backend;
  const AttentionLayer& weights = layer.attention;
  const AttentionGeometry& geometry = model_->attention;
  const Rows normed = Scratch(ScratchPart::kNormed, rows);
  const Rows q_gate = Scratch(ScratchPart::kQGate, rows);
  const Rows q = Scratch(ScratchPart::kQ, rows);
  const Rows k = Scratch(ScratchPart::kK, rows);
  const Rows v = Scratch(ScratchPart::kV, rows);
  const Rows attended = Scratch(ScratchPart::kAttended, rows);
  const AttentionWeights small{weights.q_norm.floats(), weights.k_norm.floats(),
                               model_->inv_freq.floats()};
  const LinearWeight* const inputs[] = {weights.q.get(), weights.k.get(), weights.v.get()};
  TRY(backend.Linears(inputs, normed, std::array{q_gate, k, v}));
  int64_t first = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    const int64_t count = static_cast<int64_t>(slices[i].ids.size());
    const KvPages pages = slices[i].sequence->pages_of(index);
    TRY(backend.AttentionInputs(geometry, small, positions[i], q_gate.Slice(first, count),
                                k.Slice(first, count), v.Slice(first, count), q.Slice(first, count),
                                pages));
    TRY(backend.Attention(geometry, positions[i], q.Slice(first, count), q_gate.Slice(first, count),
                          pages, attended.Slice(first, count)));
    first += count;
  }
  return backend.Linear(*weights.o, attended, Scratch(ScratchPart::kMixed, rows));
}

Status ForwardPass::RunDeltaNet(const ModelLayer& layer, size_t index,
                                std::span<const PassSlice> slices, int64_t rows) {
  Backend& backend = *model_->backend;
  const DeltaNetLayer& weights = layer.delta_net;
  const DeltaNetGeometry& geometry = model_->delta_net;
  const Rows normed = Scratch(ScratchPart::kNormed, rows);
  const Rows qkv = Scratch(ScratchPart::kQkv, rows);
  const Rows conv = Scratch(ScratchPart::kConv, rows);
  const Rows z = Scratch(ScratchPart::kZ, rows);
  const Rows a = Scratch(ScratchPart::kA, rows);
  const Rows b = Scratch(ScratchPart::kB, rows);
  const Rows rule = Scratch(ScratchPart::kRule, rows);
  const DeltaNetWeights small{weights.a_log.floats(), weights.dt_bias.floats()};
  const LinearWeight* const inputs[] = {weights.qkv.get(), weights.z.get(), weights.a.get(),
                                        weights.b.get()};
  TRY(backend.Linears(inputs, normed, std::array{qkv, z, a, b}));
  int64_t first = 0;
  for (const PassSlice& slice : slices) {
    const int64_t count = static_cast<int64_t>(slice.ids.size());
    const Sequence::DeltaNetState& state = slice.sequence->layers_[index].delta_net;
    const bool joins = slice.window == nullptr;
    float* window = state.window.floats();
    float* matrix = state.state.floats();
    TRY(backend.ConvSilu(geometry, weights.conv.floats(), qkv.Slice(first, count), window,
                         joins ? window : nullptr, conv.Slice(first, count)));
    TRY(backend.DeltaNet(geometry, small, conv.Slice(first, count), a.Slice(first, count),
                         b.Slice(first, count), matrix, joins ? matrix : nullptr,
                         rule.Slice(first, count)));
    if (!joins) {
      const VerifyWindow::Record& record = slice.window->records_[index];
      const auto keep = [&](const Buffer& to, Rows from) {
        return backend.Copy(to.data(), from.data,
                            static_cast<size_t>(from.rows * from.cols) * sizeof(float));
      };
      TRY(keep(record.qkv, qkv.Slice(first, count)));
      TRY(keep(record.a, a.Slice(first, count)));
      TRY(keep(record.b, b.Slice(first, count)));
    }
    first += count;
  }
  TRY(backend.GatedNorm(geometry, weights.norm.floats(), rule, z, rule));
  return backend.Linear(*weights.out, rule, Scratch(ScratchPart::kMixed, rows));
}

Status ForwardPass::RunMlp(const ModelLayer& layer, int64_t rows) {
  Backend& backend = *model_->backend;
  const Rows normed = Scratch(ScratchPart::kNormed, rows);
  const Rows gate = Scratch(ScratchPart::kGate, rows);
  const Rows up = Scratch(ScratchPart::kUp, rows);
  const LinearWeight* const inputs[] = {layer.gate.get(), layer.up.get()};
  TRY(backend.Linears(inputs, normed, std::array{gate, up}));
  TRY(backend.SwiGlu(gate, up, gate));
  return backend.Linear(*layer.down, gate, Scratch(ScratchPart::kMixed, rows));
}

Status ForwardPass::RunHead(std::span<const HeadRow> rows) {
  Backend& backend = *model_->backend;
  // No download follows that would tell what went wrong in the layers: the caller has to know now.
  if (rows.empty()) return backend.Finish();
  const int64_t vocab = model_->config.vocab;
  const Rows hidden = Scratch(ScratchPart::kHidden, max_rows_);
  const size_t group = static_cast<size_t>(std::min(kHeadRows, max_rows_));
  for (size_t done = 0; done < rows.size(); done += group) {
    const auto part = rows.subspan(done, std::min(group, rows.size() - done));
    const int64_t count = static_cast<int64_t>(part.size());
    const Rows normed = Scratch(ScratchPart::kNormed, count);
    const Rows logits = Scratch(ScratchPart::kLogits, count);
    for (int64_t at = 0; at < count;) {  // neighbours in one call
      int64_t run = 1;
      while (at + run < count && part[at + run].row == part[at].row + run) ++run;
      TRY(backend.RmsNorm(hidden.Slice(part[at].row, run), model_->final_norm.floats(),
                          model_->config.eps, normed.Slice(at, run)));
      at += run;
    }
    TRY(backend.Linear(*model_->head, normed, logits));
    for (int64_t at = 0; at < count;) {  // neighbours of one output in one call
      std::vector<float>& out = *part[at].out;
      int64_t run = 1;
      while (at + run < count && part[at + run].out == &out) ++run;
      const size_t before = out.size();
      const size_t values = static_cast<size_t>(run * vocab);
      out.resize(before + values);
      TRY(backend.Download(out.data() + before, logits.data + at * vocab, values * sizeof(float)));
      at += run;
    }
  }
  return {};
}

}  // namespace hallmark
