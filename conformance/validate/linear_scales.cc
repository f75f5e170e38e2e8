// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/linear_scales.h"

#include <fmt/format.h>
#include <array>
#include <cmath>
#include <cstring>

#include "conformance/validate/siblings.h"
#include "conformance/validate/tensor_values.h"
#include "engine/backend/exl3_codec.h"
#include "engine/base/float_types.h"

namespace hallmark {
namespace {

constexpr float kSmallestNormal = 0x1p-14f;
constexpr float kLargestHalf = 65504.0f;
// Trained layers of one kind stay within a factor of about 4 of their middle.
constexpr double kOutlier = 16;
constexpr double kImplausible = 256;
// Linears without enough siblings are held against all others, whose kinds differ more.
constexpr double kOutlierAmongAll = 128;
constexpr double kImplausibleAmongAll = 4096;
// Trained linears have gains of about 0.1 to 30.
constexpr double kWeakest = 1e-4;
constexpr double kStrongest = 1e4;
constexpr double kSpike = 1000;
constexpr int64_t kFewToStandOut = 16;
constexpr double kManyDead = 1.0 / 16;
constexpr double kManySubnormal = 0.01;
constexpr int64_t kFewSubnormal = 8;

// `size`: the model's, of the stored ones.
Result<ScaleVector> Measure(const TensorView& tensor, bool packed, int64_t size) {
  ScaleVector out{.packed = packed, .count = size};
  if (packed) {
    out.largest = 1;
    out.rms = 1;
    return out;
  }
  const std::vector<float> values = TRY(ReadFloats(tensor));
  double squares = 0;
  int64_t counted = 0;
  for (int64_t i = 0; i < size; ++i) {
    const float magnitude = std::fabs(values[static_cast<size_t>(i)]);
    if (!std::isfinite(magnitude)) {
      ++out.not_finite;
    } else if (magnitude == 0) {
      if (out.zeros++ == 0) out.first_zero = i;
    } else {
      out.subnormal += magnitude < kSmallestNormal;
      out.saturated += magnitude >= kLargestHalf;
      out.largest = std::max(out.largest, magnitude);
      squares += double{magnitude} * magnitude;
      ++counted;
    }
  }
  if (counted == 1) out.rms = out.largest;
  if (counted > 1) {
    const double rest = std::max(0.0, squares - double{out.largest} * out.largest);
    out.rms = std::sqrt(rest / static_cast<double>(counted - 1));
  }
  return out;
}

Result<std::vector<bool>> LiveBlocks(const Exl3Group& group) {
  std::vector<bool> live(static_cast<size_t>(group.n / kExl3Block), group.output_packed);
  if (group.output_packed) return live;
  const std::vector<float> values = TRY(ReadFloats(group.output_scale));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) live[i / kExl3Block] = true;
  }
  return live;
}

class Judge {
 public:
  Judge(const std::vector<LinearScales>& scales, StepFindings* findings) : findings_(findings) {
    for (const LinearScales& linear : scales) {
      if (linear.gain <= 0) continue;
      siblings_.Add(linear.source->name(), linear.gain);
      all_.push_back(linear.gain);
    }
  }

  void Look(const LinearScales& linear, bool head) {
    Side(linear.group->input_scale, linear.input);
    Side(linear.group->output_scale, linear.output);
    Dead(linear, head);
    if (linear.gain > 0 && Tells(linear.input) && Tells(linear.output)) Gain(linear);
  }

 private:
  void Tell(std::string_view check, Code code, Locator where, std::string message) {
    findings_->Add(check, {.code = code, .message = std::move(message), .where = std::move(where)});
  }

  // A few scales have no telling RMS, and what subnormal ones amount to follows from them.
  static bool Tells(const ScaleVector& side) {
    const int64_t counted = side.count - side.zeros - side.not_finite;
    return side.packed || (counted > kFewToStandOut && side.subnormal < counted);
  }

  // Values that are not finite are found by the scan of all bytes.
  void Side(const TensorView& tensor, const ScaleVector& side) {
    if (side.packed) return;
    const int64_t counted = side.count - side.zeros - side.not_finite;
    if (side.zeros == side.count) {
      Tell("scale-all-zero", Code::kOutOfRange, tensor.where(),
           fmt::format("all {} scales are zero", side.count));
    } else if (counted > 0 && side.subnormal == counted) {
      Tell("scale-all-subnormal", Code::kOutOfRange, tensor.where(),
           fmt::format("every scale that is not zero is below 2^-14, the largest is {:.3g}",
                       side.largest));
    } else if (side.subnormal >= kFewSubnormal &&
               static_cast<double>(side.subnormal) >
                   kManySubnormal * static_cast<double>(side.count)) {
      Tell("scale-subnormal", Code::kOutOfRange, tensor.where(),
           fmt::format("{} of {} scales are below 2^-14", side.subnormal, side.count));
    }
    if (side.saturated > 0) {
      Tell("scale-saturated", Code::kOutOfRange, tensor.where(),
           fmt::format("{} of {} scales are 65504", side.saturated, side.count));
    }
    if (side.saturated == 0 && counted > kFewToStandOut && side.largest > kSpike * side.rms) {
      Tell("scale-spike", Code::kOutOfRange, tensor.where(),
           fmt::format("one scale is {:.4g}, the others have an RMS of {:.3g}", side.largest,
                       side.rms));
    }
  }

  void Dead(const LinearScales& linear, bool head) {
    const ScaleVector& in = linear.input;
    if (in.zeros > 0 && in.zeros < in.count) {
      Tell("dead-inputs", Code::kOutOfRange, At(linear.group->input_scale, in.first_zero),
           fmt::format("{} of {} input scales are zero, the first at index {}", in.zeros, in.count,
                       in.first_zero));
    }
    const ScaleVector& out = linear.output;
    if (out.zeros == 0 || out.zeros == out.count) return;
    const bool many = static_cast<double>(out.zeros) > kManyDead * static_cast<double>(out.count);
    Tell(head   ? "dead-head-rows"
         : many ? "many-dead-outputs"
                : "dead-outputs",
         Code::kOutOfRange, At(linear.group->output_scale, out.first_zero),
         fmt::format("{} of {} output scales are zero, the first at index {}", out.zeros, out.count,
                     out.first_zero));
  }

  static Locator At(const TensorView& tensor, int64_t index) {
    Locator where = tensor.where();
    where.byte = tensor.file_offset + static_cast<uint64_t>(2 * index);
    return where;
  }

  void Gain(const LinearScales& linear) {
    const std::string& name = linear.source->name();
    const Locator where = linear.group->output_scale.where();
    double middle = siblings_.MedianFor(name);
    const bool related = middle > 0;
    if (!related && all_.size() >= Siblings::kFewest) middle = Siblings::Median(all_);
    const double apart = middle > 0 ? Apart(linear.gain, middle) : 1;
    if (apart > (related ? kOutlier : kOutlierAmongAll)) {
      const bool grave = apart > (related ? kImplausible : kImplausibleAmongAll);
      Tell(grave ? "scale-implausible" : "scale-outlier", Code::kOutOfRange, where,
           fmt::format(
               "the linear's gain is {:.4g}, that of {} is {:.4g} in the middle", linear.gain,
               related ? fmt::format("the {} linears of its kind",
                                     siblings_.kinds().at(std::string(TensorKind(name))).size())
                       : fmt::format("all {} linears", all_.size()),
               middle));
    }
    if (linear.gain < kWeakest || linear.gain > kStrongest) {
      Tell("gain-implausible", Code::kOutOfRange, where,
           fmt::format("for inputs of RMS 1 the linear's outputs have an RMS of {:.4g}",
                       linear.gain));
    }
  }

  StepFindings* findings_;
  Siblings siblings_;
  std::vector<double> all_;
};

}  // namespace

double CodebookRms(Codebook codebook) {
  static const std::array<double, 3> kRms = [] {
    std::array<double, 3> rms{};
    for (const Codebook each : {Codebook::k3inst, Codebook::kMcg, Codebook::kMul1}) {
      double squares = 0;
      for (uint32_t state = 0; state < 65536; ++state) {
        squares += std::pow(HalfToFloat(CodebookValue(each, static_cast<uint16_t>(state))), 2);
      }
      rms[static_cast<size_t>(each)] = std::sqrt(squares / 65536);
    }
    return rms;
  }();
  return kRms[static_cast<size_t>(codebook)];
}

Result<std::vector<LinearScales>> ReadLinearScales(
    const std::vector<const LinearSource*>& linears) {
  std::vector<LinearScales> out;
  for (const LinearSource* source : linears) {
    const auto* group = std::get_if<Exl3Group>(&source->weights);
    if (group == nullptr) continue;
    LinearScales linear{.source = source, .group = group};
    linear.input = TRY(Measure(group->input_scale, group->input_packed, source->in_features));
    linear.output = TRY(Measure(group->output_scale, group->output_packed, source->out_features));
    linear.live = TRY(LiveBlocks(*group));
    linear.gain = linear.input.rms * linear.output.rms * CodebookRms(group->codebook) *
                  std::sqrt(static_cast<double>(source->in_features));
    out.push_back(std::move(linear));
  }
  return out;
}

void JudgeLinearScales(const std::vector<LinearScales>& scales, const LinearSource* head,
                       StepFindings* findings) {
  Judge judge(scales, findings);
  for (const LinearScales& linear : scales) {
    judge.Look(linear, head != nullptr && linear.source == head);
  }
}

}  // namespace hallmark
