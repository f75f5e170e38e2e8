// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/model_copy.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/float_types.h"
#include "engine/format/safetensors.h"

namespace hallmark {
namespace {

constexpr char kWeights[] = "/model.safetensors";

float Get(const TensorSpec& tensor, size_t index) {
  const size_t size = static_cast<size_t>(DTypeSize(tensor.dtype));
  CHECK((index + 1) * size <= tensor.bytes.size());
  const char* at = tensor.bytes.data() + index * size;
  float whole = 0;
  uint16_t half = 0;
  if (tensor.dtype == DType::kF32) {
    std::memcpy(&whole, at, sizeof(whole));
    return whole;
  }
  std::memcpy(&half, at, sizeof(half));
  CHECK(tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16);
  return tensor.dtype == DType::kF16 ? HalfToFloat(half) : Bf16ToFloat(half);
}

void Put(TensorSpec& tensor, size_t index, float value) {
  const size_t size = static_cast<size_t>(DTypeSize(tensor.dtype));
  CHECK((index + 1) * size <= tensor.bytes.size());
  char* at = tensor.bytes.data() + index * size;
  if (tensor.dtype == DType::kF32) {
    std::memcpy(at, &value, sizeof(value));
    return;
  }
  const uint16_t half = tensor.dtype == DType::kF16 ? FloatToHalf(value) : FloatToBf16(value);
  std::memcpy(at, &half, sizeof(half));
}

}  // namespace

ModelCopy::ModelCopy(const std::string& folder) : source_(folder) {
  const auto file = SafetensorsFile::Open(folder + kWeights);
  CHECK(file.has_value());
  for (const TensorView& tensor : file->tensors()) {
    TensorSpec spec{.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape};
    spec.bytes.assign(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    tensors_.push_back(std::move(spec));
  }
  std::map<std::string, uint64_t> offsets;
  for (const TensorView& tensor : file->tensors()) offsets[tensor.name] = tensor.file_offset;
  std::ranges::sort(tensors_, {},
                    [&offsets](const TensorSpec& tensor) { return offsets.at(tensor.name); });
}

TensorSpec& ModelCopy::Tensor(std::string_view name) {
  const auto found = std::ranges::find(tensors_, name, &TensorSpec::name);
  CHECK(found != tensors_.end());
  return *found;
}

void ModelCopy::Swap(std::string_view a, std::string_view b) {
  CHECK(Tensor(a).shape == Tensor(b).shape && Tensor(a).dtype == Tensor(b).dtype);
  CHECK(Tensor(a).bytes != Tensor(b).bytes);
  std::swap(Tensor(a).bytes, Tensor(b).bytes);
}

void ModelCopy::Set(std::string_view name, size_t index, float value) {
  Put(Tensor(name), index, value);
}

void ModelCopy::Map(std::string_view name, const std::function<float(float)>& change) {
  TensorSpec& tensor = Tensor(name);
  const size_t count = tensor.bytes.size() / static_cast<size_t>(DTypeSize(tensor.dtype));
  for (size_t i = 0; i < count; ++i) Put(tensor, i, change(Get(tensor, i)));
}

std::vector<float> ModelCopy::Values(std::string_view name) {
  const TensorSpec& tensor = Tensor(name);
  std::vector<float> values(tensor.bytes.size() / static_cast<size_t>(DTypeSize(tensor.dtype)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = Get(tensor, i);
  return values;
}

void ModelCopy::Fill(std::string_view name, size_t begin, size_t bytes, char byte) {
  TensorSpec& tensor = Tensor(name);
  CHECK(begin + bytes <= tensor.bytes.size());
  std::fill_n(tensor.bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes, byte);
}

void ModelCopy::Write(const std::string& folder) const {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto& entry : std::filesystem::directory_iterator(source_)) {
    if (entry.path().extension() != ".json") continue;
    std::filesystem::copy_file(entry.path(),
                               std::filesystem::path(folder) / entry.path().filename());
  }
  CHECK(WriteSafetensors(folder + kWeights, tensors_).has_value());
}

}  // namespace hallmark
