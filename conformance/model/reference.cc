// SPDX-License-Identifier: Apache-2.0
#include "conformance/model/reference.h"

#include <cmath>

namespace hallmark {
namespace {

using Vector = std::vector<double>;
using Sequence2d = std::vector<Vector>;  // one vector a token

double SigmoidOf(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double SiluOf(double x) { return x * SigmoidOf(x); }

class ReferenceModel {
 public:
  ReferenceModel(const ModelConfig& config, const ReferenceWeights& weights)
      : config_(config), weights_(weights) {}

  std::vector<double> Logits(std::span<const int32_t> ids) const {
    Sequence2d stream;
    for (const int32_t id : ids) {
      const Vector& table = Weight("embed_tokens.weight");
      const auto row = table.begin() + id * config_.hidden;
      stream.emplace_back(row, row + config_.hidden);
    }
    for (size_t layer = 0; layer < config_.layers.size(); ++layer) {
      const std::string prefix = "layers." + std::to_string(layer) + ".";
      const Sequence2d normed = Norm(stream, prefix + "input_layernorm.weight");
      AddTo(stream, config_.layers[layer] == LayerKind::kAttention
                        ? Attention(normed, prefix + "self_attn.")
                        : DeltaNet(normed, prefix + "linear_attn."));
      AddTo(stream, Mlp(Norm(stream, prefix + "post_attention_layernorm.weight"), prefix + "mlp."));
    }
    std::vector<double> logits;
    const bool tied = weights_.count("lm_head.weight") == 0;
    for (const Vector& row : Norm(stream, "norm.weight")) {
      const Vector y = Apply(tied ? "embed_tokens.weight" : "lm_head.weight", row, config_.vocab);
      logits.insert(logits.end(), y.begin(), y.end());
    }
    return logits;
  }

 private:
  const Vector& Weight(const std::string& name) const { return weights_.at(name); }

  Vector Apply(const std::string& name, const Vector& x, int64_t outputs) const {
    const Vector& w = Weight(name);
    const size_t inputs = x.size();
    Vector y(static_cast<size_t>(outputs), 0.0);
    for (size_t o = 0; o < y.size(); ++o) {
      for (size_t i = 0; i < inputs; ++i) y[o] += w[o * inputs + i] * x[i];
    }
    return y;
  }

  // y = x / rms(x) * (1 + w).
  Vector NormRow(const Vector& x, const Vector& w) const {
    double square = 0;
    for (const double value : x) square += value * value;
    const double r = 1.0 / std::sqrt(square / x.size() + config_.eps);
    Vector y(x.size());
    for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * r * (1.0 + w[i]);
    return y;
  }
  Sequence2d Norm(const Sequence2d& x, const std::string& name) const {
    Sequence2d y;
    for (const Vector& row : x) y.push_back(NormRow(row, Weight(name)));
    return y;
  }

  static void AddTo(Sequence2d& stream, const Sequence2d& term) {
    for (size_t t = 0; t < stream.size(); ++t) {
      for (size_t i = 0; i < stream[t].size(); ++i) stream[t][i] += term[t][i];
    }
  }

  Sequence2d Mlp(const Sequence2d& x, const std::string& prefix) const {
    Sequence2d out;
    for (const Vector& row : x) {
      Vector gate = Apply(prefix + "gate_proj.weight", row, config_.intermediate);
      const Vector up = Apply(prefix + "up_proj.weight", row, config_.intermediate);
      for (size_t i = 0; i < gate.size(); ++i) gate[i] = SiluOf(gate[i]) * up[i];
      out.push_back(Apply(prefix + "down_proj.weight", gate, config_.hidden));
    }
    return out;
  }

  // Norm, then rotation of the first rotary_dim channels in pairs (d, d + rotary_dim / 2).
  Vector HeadInput(const Vector& head, const std::string& norm, size_t position) const {
    Vector y = NormRow(head, Weight(norm));
    const int half = config_.rotary_dim / 2;
    for (int d = 0; d < half; ++d) {
      const double angle = position * std::pow(config_.rope_theta, -2.0 * d / config_.rotary_dim);
      const double first = y[d], second = y[d + half];
      y[d] = first * std::cos(angle) - second * std::sin(angle);
      y[d + half] = second * std::cos(angle) + first * std::sin(angle);
    }
    return y;
  }

  Sequence2d Attention(const Sequence2d& x, const std::string& prefix) const {
    const size_t tokens = x.size();
    const int dim = config_.head_dim;
    std::vector<Sequence2d> keys(tokens), values(tokens);
    Sequence2d out(tokens);
    for (size_t t = 0; t < tokens; ++t) {
      const Vector k = Apply(prefix + "k_proj.weight", x[t], config_.kv_width());
      const Vector v = Apply(prefix + "v_proj.weight", x[t], config_.kv_width());
      for (int h = 0; h < config_.kv_heads; ++h) {
        const Vector key(k.begin() + h * dim, k.begin() + (h + 1) * dim);
        keys[t].push_back(HeadInput(key, prefix + "k_norm.weight", t));
        values[t].emplace_back(v.begin() + h * dim, v.begin() + (h + 1) * dim);
      }
      const Vector q = Apply(prefix + "q_proj.weight", x[t], 2 * config_.query_width());
      Vector joined;
      for (int h = 0; h < config_.heads; ++h) {
        const auto start = q.begin() + 2 * h * dim;
        const Vector query = HeadInput(Vector(start, start + dim), prefix + "q_norm.weight", t);
        const size_t kv = static_cast<size_t>(h) * config_.kv_heads / config_.heads;
        Vector weight(t + 1);
        double total = 0;
        for (size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (int d = 0; d < dim; ++d) score += query[d] * keys[s][kv][d];
          total += weight[s] = std::exp(score / std::sqrt(static_cast<double>(dim)));
        }
        for (int d = 0; d < dim; ++d) {
          double value = 0;
          for (size_t s = 0; s <= t; ++s) value += weight[s] * values[s][kv][d];
          joined.push_back(value / total * SigmoidOf(start[dim + d]));
        }
      }
      out[t] = Apply(prefix + "o_proj.weight", joined, config_.hidden);
    }
    return out;
  }

  Sequence2d DeltaNet(const Sequence2d& x, const std::string& prefix) const {
    const int dk = config_.linear_key_dim, dv = config_.linear_value_dim;
    const int key_heads = config_.linear_key_heads, value_heads = config_.linear_value_heads;
    const int64_t channels = config_.conv_channels();
    const Vector& taps = Weight(prefix + "conv1d.weight");
    Sequence2d inputs, out;
    std::vector<Vector> state(static_cast<size_t>(value_heads), Vector(dk * dv, 0.0));
    for (size_t t = 0; t < x.size(); ++t) {
      inputs.push_back(Apply(prefix + "in_proj_qkv.weight", x[t], channels));
      const Vector z = Apply(prefix + "in_proj_z.weight", x[t], config_.linear_value_width());
      const Vector a = Apply(prefix + "in_proj_a.weight", x[t], value_heads);
      const Vector b = Apply(prefix + "in_proj_b.weight", x[t], value_heads);
      Vector mixed(static_cast<size_t>(channels), 0.0);
      const int kernel = config_.conv_kernel;
      for (int64_t c = 0; c < channels; ++c) {
        for (int j = 0; j < kernel; ++j) {
          const int64_t source = static_cast<int64_t>(t) - (kernel - 1) + j;
          if (source >= 0) mixed[c] += taps[c * kernel + j] * inputs[source][c];
        }
        mixed[c] = SiluOf(mixed[c]);
      }
      Vector joined;
      for (int head = 0; head < value_heads; ++head) {
        const int key_head = head * key_heads / value_heads;
        Vector q(mixed.begin() + key_head * dk, mixed.begin() + (key_head + 1) * dk);
        Vector k(mixed.begin() + (key_heads + key_head) * dk,
                 mixed.begin() + (key_heads + key_head + 1) * dk);
        const double* v = mixed.data() + 2 * key_heads * dk + head * dv;
        UnitLength(q);
        UnitLength(k);
        const double step = Weight(prefix + "dt_bias")[head] + a[head];
        const double softplus = step > 20 ? step : std::log1p(std::exp(step));
        const double decay = std::exp(-std::exp(Weight(prefix + "A_log")[head]) * softplus);
        Vector& s = state[head];
        for (double& value : s) value *= decay;
        Vector o(dv);
        for (int c = 0; c < dv; ++c) {
          double read = 0;
          for (int i = 0; i < dk; ++i) read += s[i * dv + c] * k[i];
          const double delta = SigmoidOf(b[head]) * (v[c] - read);
          for (int i = 0; i < dk; ++i) s[i * dv + c] += k[i] * delta;
          for (int i = 0; i < dk; ++i) o[c] += s[i * dv + c] * q[i] / std::sqrt(dk);
        }
        double square = 0;
        for (const double value : o) square += value * value;
        const double r = 1.0 / std::sqrt(square / dv + config_.eps);
        for (int c = 0; c < dv; ++c) {
          joined.push_back(o[c] * r * Weight(prefix + "norm.weight")[c] * SiluOf(z[head * dv + c]));
        }
      }
      out.push_back(Apply(prefix + "out_proj.weight", joined, config_.hidden));
    }
    return out;
  }

  static void UnitLength(Vector& x) {
    double square = 0;
    for (const double value : x) square += value * value;
    const double r = 1.0 / std::sqrt(square + 1e-6);
    for (double& value : x) value *= r;
  }

  const ModelConfig& config_;
  const ReferenceWeights& weights_;
};

}  // namespace

std::vector<double> ReferenceLogits(const ModelConfig& config, const ReferenceWeights& weights,
                                    std::span<const int32_t> ids) {
  return ReferenceModel(config, weights).Logits(ids);
}

}  // namespace hallmark
