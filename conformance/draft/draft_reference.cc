// SPDX-License-Identifier: Apache-2.0
#include "conformance/draft/draft_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "engine/base/check.h"
#include "engine/base/float_types.h"

namespace hallmark {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

class Net {
 public:
  Net(const DrafterConfig& config, const DraftWeights& weights)
      : config_(config), weights_(weights) {}

  const Vector& W(const std::string& name) const {
    const auto found = weights_.find(name);
    CHECK(found != weights_.end());
    return found->second;
  }

  Vector Linear(const std::string& name, const Vector& x) const {
    const Vector& w = W(name);
    Vector y(w.size() / x.size(), 0.0);
    for (size_t o = 0; o < y.size(); ++o) {
      for (size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
    }
    return y;
  }

  Vector Norm(const std::string& name, const Vector& x) const {
    const Vector& w = W(name);
    Vector y(x);
    for (size_t start = 0; start < x.size(); start += w.size()) {
      double sum = 0.0;
      for (size_t i = 0; i < w.size(); ++i) sum += x[start + i] * x[start + i];
      const double r = 1.0 / std::sqrt(sum / static_cast<double>(w.size()) + config_.eps);
      for (size_t i = 0; i < w.size(); ++i) y[start + i] = x[start + i] * r * w[i];
    }
    return y;
  }

  Vector Rope(Vector x, int64_t position) const {
    const size_t dim = static_cast<size_t>(config_.head_dim);
    for (size_t head = 0; head < x.size(); head += dim) {
      for (size_t i = 0; i < dim / 2; ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(dim);
        const double angle = static_cast<double>(position) * std::pow(config_.rope_theta, exponent);
        const double a = x[head + i];
        const double b = x[head + i + dim / 2];
        x[head + i] = a * std::cos(angle) - b * std::sin(angle);
        x[head + i + dim / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
    return x;
  }

  // Convolves the block's rows with the coefficients that come from `normed`.
  Matrix Convolve(const std::string& at, size_t side, const Matrix& normed, const Matrix& x) const {
    if (!config_.conv) return x;
    const size_t kernel = static_cast<size_t>(config_.conv->kernel);
    const size_t group = static_cast<size_t>(config_.conv->group);
    const size_t hidden = x[0].size();
    const Vector& base = W(at + "base_kernel");
    Matrix out(x.size(), Vector(hidden, 0.0));
    for (size_t row = 0; row < x.size(); ++row) {
      const Vector dyn = Linear(at + "kernel_projection.weight", normed[row]);
      for (size_t tap = 0; tap < kernel && tap <= row; ++tap) {
        for (size_t c = 0; c < hidden; ++c) {
          const size_t shared = (side * kernel + tap) * (hidden / group) + c / group;
          out[row][c] += (base[(side * kernel + tap) * hidden + c] + dyn[shared]) * x[row - tap][c];
        }
      }
    }
    return out;
  }

  bool Sees(const DrafterLayerKind& kind, int64_t query, int64_t key, int64_t length) const {
    if (kind.window && (query - key >= *kind.window || key - query >= *kind.window)) return false;
    return key < length || !kind.causal || key <= query;
  }

  Matrix Attention(size_t layer, const Matrix& context, const Matrix& block) const {
    const std::string at = "layers." + std::to_string(layer) + ".self_attn.";
    const int64_t length = static_cast<int64_t>(context.size());
    Matrix keys, values;
    for (const Matrix* rows : {&context, &block}) {
      for (const Vector& row : *rows) {
        const int64_t position = static_cast<int64_t>(keys.size());
        keys.push_back(
            Rope(Norm(at + "k_norm.weight", Linear(at + "k_proj.weight", row)), position));
        values.push_back(Linear(at + "v_proj.weight", row));
      }
    }
    const size_t dim = static_cast<size_t>(config_.head_dim);
    const size_t shared = static_cast<size_t>(config_.heads / config_.kv_heads);
    Matrix out;
    for (size_t row = 0; row < block.size(); ++row) {
      const int64_t position = length + static_cast<int64_t>(row);
      const Vector q =
          Rope(Norm(at + "q_norm.weight", Linear(at + "q_proj.weight", block[row])), position);
      Vector mixed(q.size(), 0.0);
      for (size_t head = 0; head < q.size() / dim; ++head) {
        const size_t kv = head / shared * dim;
        double sum = 0.0;
        for (size_t t = 0; t < keys.size(); ++t) {
          if (!Sees(config_.layers[layer], position, static_cast<int64_t>(t), length)) continue;
          double dot = 0.0;
          for (size_t d = 0; d < dim; ++d) dot += q[head * dim + d] * keys[t][kv + d];
          const double p = std::exp(dot / std::sqrt(static_cast<double>(dim)));
          sum += p;
          for (size_t d = 0; d < dim; ++d) mixed[head * dim + d] += p * values[t][kv + d];
        }
        for (size_t d = 0; d < dim; ++d) mixed[head * dim + d] /= sum;
      }
      out.push_back(Linear(at + "o_proj.weight", mixed));
    }
    return out;
  }

  Vector Mlp(const std::string& at, const Vector& x) const {
    Vector gate = Linear(at + "gate_proj.weight", x);
    const Vector up = Linear(at + "up_proj.weight", x);
    for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
    return Linear(at + "down_proj.weight", gate);
  }

  void Layer(size_t layer, const Matrix& context, Matrix* h) const {
    const std::string at = "layers." + std::to_string(layer) + ".";
    for (const bool attention : {true, false}) {
      const std::string conv = at + (attention ? "attention_conv." : "mlp_conv.");
      Matrix normed;
      for (const Vector& row : *h) {
        normed.push_back(Norm(
            at + (attention ? "input_layernorm.weight" : "post_attention_layernorm.weight"), row));
      }
      Matrix mixed = Convolve(conv, 0, normed, normed);
      if (attention) {
        mixed = Attention(layer, context, mixed);
      } else {
        for (Vector& row : mixed) row = Mlp(at + "mlp.", row);
      }
      mixed = Convolve(conv, 1, normed, mixed);
      for (size_t row = 0; row < h->size(); ++row) {
        for (size_t c = 0; c < mixed[row].size(); ++c) (*h)[row][c] += mixed[row][c];
      }
    }
  }

 private:
  const DrafterConfig& config_;
  const DraftWeights& weights_;
};

// Greedy ids of the rows, and the smallest lead.
void Choose(const DrafterConfig& config, const Net& net, const Matrix& rows, int32_t anchor,
            DraftReference* out) {
  out->closest = std::numeric_limits<double>::infinity();
  const auto close = [out](double lead) { out->closest = std::min(out->closest, lead); };
  int32_t before = anchor;
  for (const Vector& row : rows) {
    Vector logits = net.Linear("head", row);
    for (double& logit : logits) {
      logit *= config.output_multiplier;
      if (config.softcap) logit = *config.softcap * std::tanh(logit / *config.softcap);
    }
    std::vector<int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
    const size_t count = config.selector ? static_cast<size_t>(config.selector->top_k) : 1;
    if (count < order.size()) close(logits[order[count - 1]] - logits[order[count]]);
    std::vector<std::pair<double, int32_t>> scores;
    const Vector g =
        config.selector ? net.Linear("candidate_selector.hidden_projection.weight", row) : Vector();
    for (size_t c = 0; c < count; ++c) {
      double score = logits[order[c]];
      for (size_t r = 0; r < g.size(); ++r) {
        const size_t rank = g.size();
        score += net.W("candidate_selector.predecessor_codebook")[before * rank + r] * g[r] *
                 net.W("candidate_selector.successor_codebook")[order[c] * rank + r];
      }
      scores.emplace_back(score, order[c]);
    }
    std::sort(scores.begin(), scores.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    if (scores.size() > 1) close(scores[0].first - scores[1].first);
    before = scores[0].second;
    out->ids.push_back(before);
  }
}

}  // namespace

std::vector<double> ValuesOf(const TensorView& tensor) {
  const size_t size = static_cast<size_t>(DTypeSize(tensor.dtype));
  std::vector<double> values(tensor.bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) {
    if (tensor.dtype == DType::kF32) {
      float value;
      std::memcpy(&value, tensor.bytes.data() + i * size, size);
      values[i] = value;
      continue;
    }
    uint16_t bits;
    std::memcpy(&bits, tensor.bytes.data() + i * size, size);
    values[i] = tensor.dtype == DType::kF16 ? HalfToFloat(bits) : Bf16ToFloat(bits);
  }
  return values;
}

DraftReference ReferenceDraft(const DrafterConfig& config, const DraftWeights& weights,
                              std::span<const float> taps, int32_t anchor) {
  const Net net(config, weights);
  const size_t width = static_cast<size_t>(config.tap_width());
  Matrix context;
  for (size_t start = 0; start < taps.size(); start += width) {
    const auto row = taps.subspan(start, width);
    context.push_back(
        net.Norm("hidden_norm.weight", net.Linear("fc.weight", Vector(row.begin(), row.end()))));
  }
  Matrix h;
  const size_t hidden = static_cast<size_t>(config.hidden);
  for (int64_t i = 0; i < config.block_size; ++i) {
    const size_t id = static_cast<size_t>(i == 0 ? anchor : config.mask_token);
    Vector row(hidden);
    for (size_t c = 0; c < hidden; ++c) {
      row[c] = net.W("embedding")[id * hidden + c] * config.input_scale;
    }
    h.push_back(std::move(row));
  }
  for (size_t layer = 0; layer < config.layers.size(); ++layer) net.Layer(layer, context, &h);
  Matrix rows;
  DraftReference out;
  for (size_t i = 1; i < h.size(); ++i) {
    rows.push_back(net.Norm("norm.weight", h[i]));
    out.rows.insert(out.rows.end(), rows.back().begin(), rows.back().end());
  }
  Choose(config, net, rows, anchor, &out);
  return out;
}

}  // namespace hallmark
