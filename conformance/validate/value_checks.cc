// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/value_checks.h"

#include <array>

namespace hallmark {
namespace {

constexpr Severity kError = Severity::kError;
constexpr Severity kWarning = Severity::kWarning;
constexpr Severity kNote = Severity::kNote;
constexpr std::string_view kReject = "format-reject";
constexpr std::string_view kAccept = "format-accept";

constexpr std::array kChecks = {
    // Bytes that nobody wrote.
    StepCheck{"zero-tail", kError, kReject,
              "Fetch or write the shard again: its end was never written."},
    StepCheck{"value-not-finite", kError, kReject,
              "Convert the tensor again: one such value poisons every output."},
    StepCheck{"tensor-all-zero", kError, kReject, "Write the tensor again: it holds only zeros."},
    StepCheck{"trellis-one-tile", kError, kReject,
              "Quantize the tensor again: all of its tiles are the same."},
    StepCheck{"constant-tiles", kError, kReject,
              "Fetch or write the shard again: these tiles hold one word all over."},
    // Scales.
    StepCheck{"scale-all-zero", kError, kReject,
              "Quantize the tensor again: scales of zero make every output zero."},
    StepCheck{"scale-all-subnormal", kError, kReject,
              "Quantize the tensor again: its scales lie below what fp16 can hold in full."},
    StepCheck{"scale-saturated", kError, kReject,
              "Quantize the tensor again: a scale was cut off at the largest fp16 value."},
    StepCheck{"scale-implausible", kError, kReject,
              "Compare the tensor with the source model: it is far from all others of its kind."},
    StepCheck{"norm-all-zero", kError, kReject,
              "Take the norm from the source model: its factor is zero everywhere."},
    // What runs, and may surprise.
    StepCheck{"scale-outlier", kWarning, kAccept,
              "Compare the tensor with the source model: it is apart from the others of its kind."},
    StepCheck{"gain-implausible", kWarning, kAccept,
              "Compare the tensor with the source model: no trained layer is expected so strong or "
              "so weak."},
    StepCheck{"scale-spike", kWarning, kAccept,
              "Compare the tensor with the source model: one scale stands far above the rest."},
    StepCheck{"scale-subnormal", kWarning, kAccept,
              "Let the other side's scales take some of the magnitude: these lose digits."},
    StepCheck{"dead-inputs", kWarning, kAccept,
              "Compare the tensor with the source model: these inputs reach no output."},
    StepCheck{"dead-head-rows", kWarning, kAccept,
              "Compare the head with the source model: these ids always score zero."},
    StepCheck{"many-dead-outputs", kWarning, kAccept,
              "Compare the tensor with the source model: so many dead outputs are rare."},
    StepCheck{"blank-tiles", kWarning, kAccept,
              "Compare the tensor with the source model: these weights are nearly zero."},
    StepCheck{"repeated-tiles", kWarning, kAccept,
              "Compare the tensor with the source model: neighbouring tiles are the same."},
    StepCheck{"zero-region", kWarning, kAccept,
              "Compare the tensor with the source model: a part of it is zero."},
    StepCheck{"plain-outlier", kWarning, kAccept,
              "Compare the tensor with the source model: it is apart from the others of its kind."},
    StepCheck{"norm-convention", kWarning, kAccept,
              "Take the norm from the source model: it looks as if 1 had been added already."},
    StepCheck{"decay-range", kWarning, kAccept,
              "Take the tensor from the source model: such values forget, or keep, everything."},
    StepCheck{"unused-not-finite", kWarning, kAccept,
              "Convert the part again: it is not loaded here, and others may."},
    // Worth knowing.
    StepCheck{"dead-outputs", kNote, kAccept,
              "Nothing need be done if the source model's outputs are zero too."},
};

}  // namespace

std::span<const StepCheck> ValueChecks() { return kChecks; }

}  // namespace hallmark
