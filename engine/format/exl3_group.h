// SPDX-License-Identifier: Apache-2.0
// Reads one EXL3 group: the tensors under one prefix, checked against each other. Not its sizes
// against the model (inventory.h), and not its scales' values: CheckFinite reads those. Clauses:
// format-accept, format-reject. Reads four bytes of data at most, the marker's.
#ifndef HALLMARK_ENGINE_FORMAT_EXL3_GROUP_H_
#define HALLMARK_ENGINE_FORMAT_EXL3_GROUP_H_

#include <optional>
#include <span>
#include <string_view>

#include "engine/base/result.h"
#include "engine/format/linear.h"
#include "engine/format/quantization_config.h"
#include "engine/format/tensor.h"

namespace hallmark {

// True when the tensors "<prefix>.<suffix>" hold anything that only an EXL3 group has.
bool LooksLikeExl3(std::string_view prefix, std::span<const TensorView> tensors);

// `tensors` are all those whose names begin with "<prefix>.". Codes, each with the tensor:
//   kNotFound     trellis, or the scales of one side, are absent
//   kMismatch     a dtype or shape that does not fit the trellis; two forms of one thing (both
//                 scale forms, both markers, .weight beside .trellis)
//   kUnsupported  no such width; a half width without mul1; a marker of another multiplier; an
//                 unknown suffix (derivative formats exist)
Result<Exl3Group> ParseExl3Group(std::string_view prefix, std::span<const TensorView> tensors);

// kOutOfRange when an F16, BF16 or F32 tensor holds an infinity or NaN: names the tensor, the
// count, the first index and its byte. Zeros of both signs, subnormals and 65504 are finite. Other
// types pass.
Status CheckFinite(const TensorView& tensor);

// EXL3 groups among `linears` and a quantization config come together or not at all: kMismatch.
Status CheckExl3IsStated(std::span<const LinearSource* const> linears,
                         const std::optional<QuantizationConfig>& quantization);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_EXL3_GROUP_H_
