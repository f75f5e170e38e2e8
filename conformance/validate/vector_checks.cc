// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/vector_checks.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/validate/tensor_values.h"

namespace hallmark {
namespace {

// exp(A_log) is the decay at a step of 1: above e^10 a state is gone after one token, below e^-20
// it never fades. Trained models lie within -7 and 5.
constexpr float kLeastLogDecay = -20;
constexpr float kMostLogDecay = 10;
// The step is softplus(a + dt_bias); beyond 30 in size the bias alone decides it.
constexpr float kMostStepBias = 30;

struct Range {
  float least = INFINITY;
  float most = -INFINITY;
  void Take(float value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  Json ToJson() const {
    if (least > most) return nullptr;
    return {{"least", least}, {"most", most}};
  }
};

class Judge {
 public:
  explicit Judge(StepFindings* findings) : findings_(findings) {}

  // `offset`: what is added to a stored value to make the factor, 1 or 0.
  Status Norm(const TensorView& tensor, float offset) {
    const std::vector<float> values = TRY(ReadFloats(tensor));
    const auto all = [&values](float wanted) {
      return std::ranges::all_of(values, [wanted](float value) { return value == wanted; });
    };
    for (const float value : values) norms_.Take(value + offset);
    if (all(-offset)) {
      Tell("norm-all-zero", tensor, fmt::format("all {} factors are zero", values.size()));
    } else if (offset == 1 && all(1)) {
      Tell("norm-convention", tensor,
           fmt::format("all {} stored values are 1, so all factors are 2: stored values are "
                       "offsets from 1",
                       values.size()));
    }
    return {};
  }

  Status Decay(const TensorView& tensor) {
    for (const float value : TRY(ReadFloats(tensor))) decay_.Take(value);
    return Within(tensor, kLeastLogDecay, kMostLogDecay);
  }

  Status StepBias(const TensorView& tensor) {
    for (const float value : TRY(ReadFloats(tensor))) step_.Take(value);
    return Within(tensor, -kMostStepBias, kMostStepBias);
  }

  Json ToJson() const {
    return {
        {"norm_factors", norms_.ToJson()}, {"a_log", decay_.ToJson()}, {"dt_bias", step_.ToJson()}};
  }

 private:
  void Tell(std::string_view check, const TensorView& tensor, std::string message) {
    findings_->Add(check, {Code::kOutOfRange, std::move(message), tensor.where()});
  }

  Status Within(const TensorView& tensor, float least, float most) {
    const std::vector<float> values = TRY(ReadFloats(tensor));
    size_t outside = 0;
    size_t first = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i]) || (values[i] >= least && values[i] <= most)) continue;
      if (outside++ == 0) first = i;
    }
    if (outside == 0) return {};
    Tell("decay-range", tensor,
         fmt::format("{} of {} values lie outside {} .. {}, the first is {:.4g} at index {}",
                     outside, values.size(), least, most, values[first], first));
    return {};
  }

  StepFindings* findings_;
  Range norms_, decay_, step_;
};

}  // namespace

Status JudgeVectors(const CheckpointInventory& inventory, StepFindings* findings, Json* facts) {
  Judge judge(findings);
  for (const LayerTensors& layer : inventory.layers) {
    TRY(judge.Norm(layer.input_norm, 1));
    TRY(judge.Norm(layer.post_norm, 1));
    if (const auto* attention = std::get_if<AttentionTensors>(&layer.mixer)) {
      TRY(judge.Norm(attention->q_norm, 1));
      TRY(judge.Norm(attention->k_norm, 1));
    } else {
      const auto& delta = std::get<DeltaNetTensors>(layer.mixer);
      TRY(judge.Norm(delta.norm, 0));
      TRY(judge.Decay(delta.a_log));
      TRY(judge.StepBias(delta.dt_bias));
    }
  }
  TRY(judge.Norm(inventory.final_norm, 1));
  *facts = judge.ToJson();
  return {};
}

}  // namespace hallmark
