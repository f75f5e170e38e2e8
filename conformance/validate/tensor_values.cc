// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/tensor_values.h"

#include <cstring>

#include "engine/base/float_types.h"
#include "engine/base/mapped_file.h"

namespace hallmark {
namespace {

template <typename Bits, typename Widen>
void WidenAll(const TensorView& tensor, Widen widen, std::vector<float>* out) {
  for (size_t i = 0; i < out->size(); ++i) {
    Bits bits;
    std::memcpy(&bits, tensor.bytes.data() + i * sizeof(Bits), sizeof(Bits));
    (*out)[i] = widen(bits);
  }
}

}  // namespace

Result<std::vector<float>> ReadFloats(const TensorView& tensor) {
  std::vector<float> out(static_cast<size_t>(tensor.elements()));
  switch (tensor.dtype) {
    case DType::kF16:
      WidenAll<uint16_t>(tensor, HalfToFloat, &out);
      break;
    case DType::kBF16:
      WidenAll<uint16_t>(tensor, Bf16ToFloat, &out);
      break;
    case DType::kF32:
      WidenAll<float>(
          tensor, [](float value) { return value; }, &out);
      break;
    default:
      return Fail(Code::kUnsupported, "the tensor holds no floats", tensor.where());
  }
  TRY(CheckIntact(tensor.bytes, tensor.file));
  return out;
}

std::string_view TensorKind(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = name.find(kLayers);
  if (at == std::string_view::npos) return name;
  const size_t dot = name.find('.', at + kLayers.size());
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace hallmark
