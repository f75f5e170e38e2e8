// SPDX-License-Identifier: Apache-2.0
// From a block's rows to token ids: the second half of DraftPass. DFlash takes the best column of
// each row; DFlash2 walks a path through the rows' candidates, a step's score depending on the id
// before it.
#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/blocked_sum.h"
#include "engine/draft/draft_pass.h"

namespace hallmark {
namespace {

// What a step compares: the score, or with noise the draw's key.
double StepKey(const DraftRequest& request, float score, int64_t position, int32_t id) {
  if (!request.noise) return static_cast<double>(score);
  return static_cast<double>(score) / std::max(request.temperature, 1e-6) +
         request.noise(position, id);
}

}  // namespace

Status DraftPass::Select(std::span<const DraftRequest> requests, std::span<DraftProposal> out) {
  TRY(RankRows(requests));
  if (drafter_->selector_) return WalkPaths(requests, out);
  const size_t kept = static_cast<size_t>(drafter_->block_size() - 1);
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::vector<int32_t>& ids = requests[i].noise ? drawn_ : columns_;
    const auto first = ids.begin() + static_cast<int64_t>(i * kept);
    out[i].ids.assign(first, first + static_cast<int64_t>(kept));
  }
  return {};
}

Status DraftPass::RankRows(std::span<const DraftRequest> requests) {
  DraftOps& ops = drafter_->ops();
  const DrafterConfig& config = drafter_->config();
  const DraftVocabulary& vocabulary = drafter_->vocabulary();
  const int64_t total = static_cast<int64_t>(requests.size()) * (config.block_size - 1);
  const Rows rows = View(rows_, total, config.hidden);
  const int64_t count = candidates();
  const DraftLogitScale scale{.multiplier = config.output_multiplier,
                              .softcap = config.softcap.value_or(0.0f)};
  for (int64_t done = 0; done < total; done += kHeadRows) {
    const int64_t here = std::min(kHeadRows, total - done);
    const Rows logits = View(logits_, here, vocabulary.size());
    TRY(ops.LinearColumns(*drafter_->target().head, vocabulary.columns(), rows.Slice(done, here),
                          logits));
    TRY(ops.ScaleLogits(scale, logits));
    const size_t at = static_cast<size_t>(done * count);
    const size_t ranked = static_cast<size_t>(here * count);
    TRY(ops.TopColumns(logits, count, std::span(columns_).subspan(at, ranked),
                       std::span(values_).subspan(at, ranked)));
    for (size_t i = at; i < at + ranked; ++i) columns_[i] = vocabulary.IdOf(columns_[i]);
    if (!drafter_->selector_) TRY(DrawRows(requests, done, logits));
  }
  return {};
}

// DFlash under noise: a step draws among all columns.
Status DraftPass::DrawRows(std::span<const DraftRequest> requests, int64_t first,
                           ConstRows logits) {
  const DraftVocabulary& vocabulary = drafter_->vocabulary();
  const int64_t kept = drafter_->block_size() - 1;
  std::vector<float> host;
  for (int64_t row = 0; row < logits.rows; ++row) {
    const DraftRequest& request = requests[static_cast<size_t>((first + row) / kept)];
    if (!request.noise) continue;
    host.resize(static_cast<size_t>(logits.cols));
    TRY(drafter_->backend().Download(host.data(), logits.data + row * logits.cols,
                                     host.size() * sizeof(float)));
    const int64_t position = request.context->length() + 1 + (first + row) % kept;
    int32_t best = -1;
    double highest = 0.0;
    for (int64_t c = 0; c < logits.cols; ++c) {
      const int32_t id = vocabulary.IdOf(c);
      const double key = StepKey(request, host[static_cast<size_t>(c)], position, id);
      if (best >= 0 && !(key > highest)) continue;
      best = id;
      highest = key;
    }
    drawn_[static_cast<size_t>(first + row)] = best;
  }
  return {};
}

// S_i(p, c) = u_i[c] + sum over r of (P[p, r] * g_i[r]) * Q[c, r], a BlockedSum; p is the anchor,
// then the id chosen before.
Status DraftPass::WalkPaths(std::span<const DraftRequest> requests, std::span<DraftProposal> out) {
  Backend& backend = drafter_->backend();
  const DrafterConfig& config = drafter_->config();
  const DrafterSelectorWeights& selector = *drafter_->selector_;
  const int64_t rank = config.selector->rank;
  const int64_t kept = config.block_size - 1;
  const int64_t count = candidates();
  const int64_t total = static_cast<int64_t>(requests.size()) * kept;
  const auto fetch = [&](const Buffer& from, int64_t rows) -> Result<std::vector<float>> {
    std::vector<float> host(static_cast<size_t>(rows * rank));
    TRY(backend.Download(host.data(), from.data(), host.size() * sizeof(float)));
    return host;
  };
  TRY(backend.Linear(*selector.projection, View(rows_, total, config.hidden),
                     View(projected_, total, rank)));
  const std::vector<float> projected = TRY(fetch(projected_, total));
  // Any candidate may come before the next row's; the anchors stand after them.
  std::vector<int32_t> ids(columns_.begin(), columns_.begin() + total * count);
  TRY(backend.Embed(*selector.successor, ids, View(codes_, total * count, rank)));
  const std::vector<float> successors = TRY(fetch(codes_, total * count));
  for (const DraftRequest& request : requests) ids.push_back(request.anchor);
  const int64_t predecessor_rows = static_cast<int64_t>(ids.size());
  TRY(backend.Embed(*selector.predecessor, ids, View(codes_, predecessor_rows, rank)));
  const std::vector<float> predecessors = TRY(fetch(codes_, predecessor_rows));

  for (int64_t stream = 0; stream < static_cast<int64_t>(requests.size()); ++stream) {
    const DraftRequest& request = requests[static_cast<size_t>(stream)];
    int64_t before = total * count + stream;  // row of `predecessors`
    for (int64_t i = 0; i < kept; ++i) {
      const int64_t row = stream * kept + i;
      const float* p = predecessors.data() + before * rank;
      const float* g = projected.data() + row * rank;
      const int64_t position = request.context->length() + 1 + i;
      int64_t best = -1;
      double highest = 0.0;
      for (int64_t c = row * count; c < (row + 1) * count; ++c) {
        const float* s = successors.data() + c * rank;
        const float edge = BlockedSum(rank, [&](int64_t r) { return p[r] * g[r] * s[r]; });
        const float score = values_[static_cast<size_t>(c)] + edge;
        if (!std::isfinite(score)) {
          return Fail(Code::kOutOfRange,
                      "the selector's score of row " + std::to_string(i + 1) + " is not finite");
        }
        const double key = StepKey(request, score, position, columns_[static_cast<size_t>(c)]);
        if (best >= 0 && !(key > highest)) continue;
        best = c;
        highest = key;
      }
      out[static_cast<size_t>(stream)].ids.push_back(columns_[static_cast<size_t>(best)]);
      before = best;
    }
  }
  return {};
}

}  // namespace hallmark
