// SPDX-License-Identifier: Apache-2.0
// ReadFloats: the values of a tensor of floats, widened exactly; and TensorKind, which says of
// which tensors one expects the like. For scales, norms and one matrix at a time, not for whole
// models.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_TENSOR_VALUES_H_
#define HALLMARK_CONFORMANCE_VALIDATE_TENSOR_VALUES_H_

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/format/tensor.h"

namespace hallmark {

// F16, BF16 or F32; kUnsupported otherwise, kIo when the map lost bytes.
Result<std::vector<float>> ReadFloats(const TensorView& tensor);

// What stands behind the layer's number: "mlp.down_proj" of "model.layers.3.mlp.down_proj". The
// whole name where there is no layer.
std::string_view TensorKind(std::string_view name);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_TENSOR_VALUES_H_
