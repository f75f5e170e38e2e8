// SPDX-License-Identifier: Apache-2.0
#include "engine/draft/draft_pass.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/check.h"

namespace hallmark {
namespace {

// Positions are angles of the first rotary pair, and sine and cosine are good to 2^20.
constexpr int64_t kMaxPositions = (int64_t{1} << 20) - DrafterConfig::kMaxBlock;

}  // namespace

int64_t DraftPass::candidates() const {
  const auto& selector = drafter_->config().selector;
  return selector ? selector->top_k : 1;
}

Result<DraftPass> DraftPass::Create(const Drafter& drafter) {
  DraftPass pass(drafter);
  const DrafterConfig& config = drafter.config();
  const auto allocate = [&](Buffer& buffer, int64_t rows, int64_t cols) -> Status {
    buffer = TRY(drafter.backend().Allocate(static_cast<size_t>(rows * cols) * sizeof(float)));
    return {};
  };
  for (Buffer* buffer : {&pass.hidden_, &pass.normed_, &pass.mixed_, &pass.rows_}) {
    TRY(allocate(*buffer, kMaxRows, config.hidden));
  }
  TRY(allocate(pass.q_, kMaxRows, config.query_width()));
  TRY(allocate(pass.attended_, kMaxRows, config.query_width()));
  TRY(allocate(pass.k_, kMaxRows, config.kv_width()));
  TRY(allocate(pass.v_, kMaxRows, config.kv_width()));
  TRY(allocate(pass.gate_, kMaxRows, config.intermediate));
  TRY(allocate(pass.up_, kMaxRows, config.intermediate));
  TRY(allocate(pass.logits_, kHeadRows, drafter.vocabulary().size()));
  if (config.conv) {
    TRY(allocate(pass.conv_, kMaxRows, config.hidden));
    TRY(allocate(pass.dyn_, kMaxRows,
                 2 * config.conv->kernel * (config.hidden / config.conv->group)));
  }
  if (config.selector) {
    TRY(allocate(pass.projected_, kMaxRows, config.selector->rank));
    TRY(allocate(pass.codes_, kMaxRows * (pass.candidates() + 1), config.selector->rank));
  }
  const size_t ranked = static_cast<size_t>(kMaxRows * pass.candidates());
  pass.columns_.resize(ranked);
  pass.values_.resize(ranked);
  pass.drawn_.resize(static_cast<size_t>(kMaxRows));
  return pass;
}

Status DraftPass::Append(DraftContext& context, ConstRows taps) {
  CHECK(context.drafter_ == drafter_);
  CHECK(taps.cols == drafter_->tap_width());
  if (context.length_ + taps.rows > kMaxPositions) {
    return Fail(Code::kOutOfRange, std::to_string(context.length_ + taps.rows) +
                                       " positions, a draft context has at most " +
                                       std::to_string(kMaxPositions));
  }
  Backend& backend = drafter_->backend();
  const int64_t end = context.length_ + taps.rows;
  int64_t next = 0;  // rows of `taps` taken or passed over
  if (const auto kept = drafter_->context_rows()) {
    // No later block sees a position below this one.
    const int64_t first = end - *kept;
    if (first >= context.length_) {
      next = first - context.length_;
      context.length_ = context.fused_ = first;
    }
    context.DropBefore(std::min(first, context.fused_));
  }
  const size_t row_bytes = static_cast<size_t>(taps.cols) * sizeof(float);
  while (next < taps.rows) {
    if (context.pending() == DraftContext::kPendingRows) TRY(FusePending(context));
    if (context.taps_.data() == nullptr) {
      context.taps_ =
          TRY(backend.Allocate(static_cast<size_t>(DraftContext::kPendingRows) * row_bytes));
    }
    const int64_t count =
        std::min(taps.rows - next, DraftContext::kPendingRows - context.pending());
    TRY(backend.Copy(context.taps_.floats() + context.pending() * taps.cols,
                     taps.data + next * taps.cols, static_cast<size_t>(count) * row_bytes));
    context.length_ += count;
    next += count;
  }
  return {};
}

Status DraftPass::FusePending(DraftContext& context) {
  static_assert(DraftContext::kPendingRows <= kMaxRows, "what waits is fused in one piece");
  const int64_t rows = context.pending();
  if (rows == 0) return {};
  Backend& backend = drafter_->backend();
  DraftOps& ops = drafter_->ops();
  const DrafterConfig& config = drafter_->config();
  const Rows fused = View(hidden_, rows, config.hidden);
  const Rows normed = View(normed_, rows, config.hidden);
  const Rows k = View(k_, rows, config.kv_width());
  const Rows v = View(v_, rows, config.kv_width());
  TRY(backend.Linear(*drafter_->fc_, {context.taps_.floats(), rows, drafter_->tap_width()}, fused));
  TRY(ops.PlainRmsNorm(fused, drafter_->hidden_norm_.floats(), config.eps, normed));
  for (size_t i = 0; i < drafter_->layers_.size(); ++i) {
    const DrafterLayer& layer = drafter_->layers_[i];
    TRY(backend.Linear(*layer.k, normed, k));
    TRY(backend.Linear(*layer.v, normed, v));
    TRY(ops.DraftHeads(drafter_->k_heads_, layer.k_norm.floats(), drafter_->inv_freq_.floats(),
                       context.fused_, k, k));
    TRY(StoreRows(context, i, rows));
  }
  context.fused_ += rows;
  return {};
}

// Copies k_ and v_ to the pages of positions fused_, fused_ + 1, ...
Status DraftPass::StoreRows(DraftContext& context, size_t layer, int64_t rows) {
  Backend& backend = drafter_->backend();
  const int64_t width = drafter_->config().kv_width();
  constexpr int64_t kPageRows = DraftContext::kPageRows;
  for (int64_t done = 0; done < rows;) {
    const int64_t position = context.fused_ + done;
    const int64_t count = std::min(rows - done, kPageRows - position % kPageRows);
    float* page = TRY(context.WritablePage(position));
    float* keys =
        page + static_cast<int64_t>(layer) * 2 * kPageRows * width + position % kPageRows * width;
    const size_t bytes = static_cast<size_t>(count * width) * sizeof(float);
    TRY(backend.Copy(keys, k_.floats() + done * width, bytes));
    TRY(backend.Copy(keys + kPageRows * width, v_.floats() + done * width, bytes));
    done += count;
  }
  return {};
}

Result<std::vector<DraftProposal>> DraftPass::Propose(std::span<const DraftRequest> requests,
                                                      bool keep_rows) {
  const DrafterConfig& config = drafter_->config();
  if (requests.empty()) return Fail(Code::kOutOfRange, "expected at least one request");
  for (size_t i = 0; i < requests.size(); ++i) {
    const DraftRequest& request = requests[i];
    CHECK(request.context != nullptr && request.context->drafter_ == drafter_);
    if (request.anchor < 0 || request.anchor >= config.vocab) {
      return Fail(Code::kOutOfRange, "the anchor of request " + std::to_string(i) + " is id " +
                                         std::to_string(request.anchor) +
                                         ", outside the vocabulary of " +
                                         std::to_string(config.vocab));
    }
  }
  for (const DraftRequest& request : requests) TRY(FusePending(*request.context));
  std::vector<DraftProposal> proposals(requests.size());
  const size_t together = static_cast<size_t>(kMaxRows / config.block_size);
  for (size_t done = 0; done < requests.size(); done += together) {
    const size_t count = std::min(together, requests.size() - done);
    const auto group = requests.subspan(done, count);
    const auto out = std::span(proposals).subspan(done, count);
    TRY(RunBlocks(group));
    TRY(Select(group, out));
    if (!keep_rows) continue;
    const int64_t values = (config.block_size - 1) * config.hidden;
    for (size_t i = 0; i < count; ++i) {
      out[i].rows.resize(static_cast<size_t>(values));
      TRY(drafter_->backend().Download(out[i].rows.data(),
                                       rows_.floats() + static_cast<int64_t>(i) * values,
                                       static_cast<size_t>(values) * sizeof(float)));
    }
  }
  return proposals;
}

Status DraftPass::RunBlocks(std::span<const DraftRequest> requests) {
  Backend& backend = drafter_->backend();
  const DrafterConfig& config = drafter_->config();
  std::vector<int32_t> ids;
  for (const DraftRequest& request : requests) {
    ids.push_back(request.anchor);
    ids.insert(ids.end(), static_cast<size_t>(config.block_size - 1), config.mask_token);
  }
  const int64_t rows = static_cast<int64_t>(ids.size());
  const Rows hidden = View(hidden_, rows, config.hidden);
  TRY(backend.Embed(*drafter_->target().embedding, ids, hidden));
  if (config.input_scale != 1.0f) TRY(drafter_->ops().Scale(hidden, config.input_scale));
  for (size_t i = 0; i < drafter_->layers_.size(); ++i) {
    TRY(RunLayer(drafter_->layers_[i], i, requests));
  }
  const Rows normed = View(normed_, rows, config.hidden);
  TRY(drafter_->ops().PlainRmsNorm(hidden, drafter_->norm_.floats(), config.eps, normed));
  const int64_t kept = config.block_size - 1;
  for (int64_t i = 0; i < static_cast<int64_t>(requests.size()); ++i) {
    // The anchor's row is the block's first; its token is known.
    TRY(backend.Copy(rows_.floats() + i * kept * config.hidden,
                     normed.Slice(i * config.block_size + 1, kept).data,
                     static_cast<size_t>(kept * config.hidden) * sizeof(float)));
  }
  return {};
}

Status DraftPass::Convolve(const DrafterConvWeights& conv, int side, Rows x, Rows out) {
  const DrafterConfig& config = drafter_->config();
  const DynamicConvGeometry geometry{.kernel = config.conv->kernel,
                                     .group = config.conv->group,
                                     .block_rows = config.block_size,
                                     .side = side};
  const float* base = conv.base.floats() + side * geometry.kernel * config.hidden;
  const Rows dyn = View(dyn_, x.rows, 2 * geometry.kernel * (config.hidden / geometry.group));
  return drafter_->ops().DynamicConv(geometry, base, dyn, x, out);
}

// hidden_ += mixer(norm(hidden_)), then the same with the MLP. A convolution's coefficients, of
// both sides, come from the normed row.
Status DraftPass::RunLayer(const DrafterLayer& layer, size_t index,
                           std::span<const DraftRequest> requests) {
  Backend& backend = drafter_->backend();
  DraftOps& ops = drafter_->ops();
  const DrafterConfig& config = drafter_->config();
  const int64_t rows = static_cast<int64_t>(requests.size()) * config.block_size;
  const Rows hidden = View(hidden_, rows, config.hidden);
  const Rows normed = View(normed_, rows, config.hidden);
  const Rows mixed = View(mixed_, rows, config.hidden);
  // What the mixer reads: the normed rows, convolved where the layer does that.
  const auto prepare = [&](const Buffer& norm,
                           const std::optional<DrafterConvWeights>& conv) -> Result<Rows> {
    TRY(ops.PlainRmsNorm(hidden, norm.floats(), config.eps, normed));
    if (!conv) return normed;
    TRY(backend.Linear(*conv->projection, normed,
                       View(dyn_, rows, conv->projection->out_features)));
    const Rows convolved = View(conv_, rows, config.hidden);
    TRY(Convolve(*conv, 0, normed, convolved));
    return convolved;
  };
  const auto finish = [&](const std::optional<DrafterConvWeights>& conv) -> Status {
    if (!conv) return backend.Add(hidden, mixed);
    TRY(Convolve(*conv, 1, mixed, normed));
    return backend.Add(hidden, normed);
  };

  TRY(Attend(layer, index, requests, TRY(prepare(layer.input_norm, layer.attention_conv))));
  TRY(finish(layer.attention_conv));

  const Rows input = TRY(prepare(layer.post_norm, layer.mlp_conv));
  const Rows gate = View(gate_, rows, config.intermediate);
  const Rows up = View(up_, rows, config.intermediate);
  TRY(backend.Linear(*layer.gate, input, gate));
  TRY(backend.Linear(*layer.up, input, up));
  TRY(backend.SwiGlu(gate, up, gate));
  TRY(backend.Linear(*layer.down, gate, mixed));
  return finish(layer.mlp_conv);
}

// mixed_ <- attention over `input`, each stream's block over its own context.
Status DraftPass::Attend(const DrafterLayer& layer, size_t index,
                         std::span<const DraftRequest> requests, ConstRows input) {
  Backend& backend = drafter_->backend();
  DraftOps& ops = drafter_->ops();
  const DrafterConfig& config = drafter_->config();
  const int64_t block = config.block_size;
  const int64_t rows = static_cast<int64_t>(requests.size()) * block;
  const Rows q = View(q_, rows, config.query_width());
  const Rows k = View(k_, rows, config.kv_width());
  const Rows v = View(v_, rows, config.kv_width());
  const Rows attended = View(attended_, rows, config.query_width());
  TRY(backend.Linear(*layer.q, input, q));
  TRY(backend.Linear(*layer.k, input, k));
  TRY(backend.Linear(*layer.v, input, v));
  const float* inv_freq = drafter_->inv_freq_.floats();
  for (size_t i = 0; i < requests.size(); ++i) {
    const DraftContext& context = *requests[i].context;
    const int64_t first = static_cast<int64_t>(i) * block;
    const Rows own_q = q.Slice(first, block);
    const Rows own_k = k.Slice(first, block);
    const int64_t position = context.length();
    TRY(ops.DraftHeads(drafter_->q_heads_, layer.q_norm.floats(), inv_freq, position, own_q,
                       own_q));
    TRY(ops.DraftHeads(drafter_->k_heads_, layer.k_norm.floats(), inv_freq, position, own_k,
                       own_k));
    const std::vector<const float*> pages = context.LayerPages(index);
    const DraftContextView seen{.first_position = context.first_position(),
                                .end = position,
                                .page_rows = DraftContext::kPageRows,
                                .pages = pages};
    TRY(ops.DraftAttention(layer.attention, seen, own_q, own_k, v.Slice(first, block),
                           attended.Slice(first, block)));
  }
  return backend.Linear(*layer.o, attended, View(mixed_, rows, config.hidden));
}

}  // namespace hallmark
