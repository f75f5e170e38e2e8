// SPDX-License-Identifier: Apache-2.0
#include "engine/format/tensor_sorter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/checked.h"
#include "engine/format/exl3_group.h"
#include "engine/format/safetensors.h"

namespace hallmark {
namespace {

constexpr int64_t kHadamardBlock = 128;

bool IsPlainFloat(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32;
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string Listed(const std::vector<const TensorView*>& tensors) {
  std::string text;
  for (const TensorView* tensor : tensors) text += (text.empty() ? "" : ", ") + tensor->name;
  return text;
}

std::string Describe(const TensorView& tensor) {
  return std::string(DTypeName(tensor.dtype)) + " " + ShapeText(tensor.shape);
}

Status CheckPlain(const TensorView& tensor, std::span<const int64_t> shape) {
  if (IsPlainFloat(tensor.dtype) && std::ranges::equal(tensor.shape, shape)) return {};
  return Fail(Code::kMismatch,
              "found " + Describe(tensor) + ", expected BF16, F16 or F32 " + ShapeText(shape),
              tensor.where());
}

Status CheckStoredSize(const Exl3Group& group, int64_t in, int64_t out) {
  const int64_t k = RoundUp(in, kHadamardBlock);
  const int64_t n = RoundUp(out, kHadamardBlock);
  if (group.k == k && group.n == n) return {};
  std::string message = "the group stores " + std::to_string(group.k) + " inputs and " +
                        std::to_string(group.n) + " outputs, the model needs " +
                        std::to_string(in) + " and " + std::to_string(out);
  if (k != in || n != out) {
    message += " (" + std::to_string(k) + " and " + std::to_string(n) + " when padded)";
  }
  return Fail(Code::kMismatch, std::move(message), group.trellis.where());
}

bool CountUnused(const TensorView& tensor, std::span<const std::string_view> prefixes,
                 std::vector<UnusedPart>* parts) {
  for (const std::string_view prefix : prefixes) {
    if (!tensor.name.starts_with(prefix)) continue;
    auto part = std::find_if(parts->begin(), parts->end(),
                             [&](const UnusedPart& known) { return known.prefix == prefix; });
    if (part == parts->end()) part = parts->insert(part, {.prefix = std::string(prefix)});
    ++part->tensors;
    part->bytes += tensor.bytes.size();
    return true;
  }
  return false;
}

}  // namespace

std::span<const TensorView> TensorsWithPrefix(std::span<const TensorView> sorted,
                                              std::string_view prefix) {
  const auto begin = std::lower_bound(
      sorted.begin(), sorted.end(), prefix,
      [](const TensorView& tensor, std::string_view wanted) { return tensor.name < wanted; });
  auto end = begin;
  while (end != sorted.end() && end->name.starts_with(prefix)) ++end;
  return {begin, end};
}

Result<TensorView> TensorSorter::Plain(const std::string& name, std::vector<int64_t> shape) {
  return PlainUnder(std::span(&name, 1), std::move(shape));
}

Result<TensorView> TensorSorter::PlainUnder(std::span<const std::string> names,
                                            std::vector<int64_t> shape) {
  const TensorView* found = nullptr;
  for (const std::string& name : names) {
    const TensorView* tensor = FindTensor(tensors_, name);
    if (tensor == nullptr) continue;
    if (found != nullptr) {
      Take(*tensor);
      TRY(Refuse({.code = Code::kMismatch,
                  .message = "the tensor is also present as " + found->name,
                  .where = tensor->where()}));
      continue;
    }
    found = tensor;
  }
  if (found == nullptr) {
    missing_.push_back(names.front());
    return TensorView{};
  }
  Take(*found);
  const Status fits = CheckPlain(*found, shape);
  if (fits.has_value()) return *found;
  TRY(Refuse(fits.error()));
  return TensorView{};
}

Status TensorSorter::Refuse(Error error) {
  if (all_ == nullptr) return Fail(std::move(error));
  all_->faults.push_back(std::move(error));
  return {};
}

Result<std::optional<LinearSource>> TensorSorter::MaybeLinear(const std::string& name, int64_t in,
                                                              int64_t out) {
  const auto parts = TensorsWithPrefix(tensors_, name + ".");
  const TensorView* weight = FindTensor(tensors_, name + ".weight");
  if (weight == nullptr && !LooksLikeExl3(name, parts)) return std::nullopt;
  auto source = ReadLinear(name, weight, in, out);
  if (source.has_value()) return std::move(*source);
  TRY(Refuse(std::move(source).error()));
  for (const TensorView& part : parts) Take(part);
  return LinearSource{};
}

Result<LinearSource> TensorSorter::ReadLinear(const std::string& name, const TensorView* weight,
                                              int64_t in, int64_t out) {
  const auto parts = TensorsWithPrefix(tensors_, name + ".");
  LinearSource source{.in_features = in, .out_features = out};
  const bool affine =
      forms_ == LinearForms::kAffineToo && (FindTensor(tensors_, name + ".scales") != nullptr ||
                                            (weight != nullptr && weight->dtype == DType::kU32));
  if (LooksLikeExl3(name, parts)) {
    for (const TensorView& part : parts) Take(part);
    Exl3Group group = TRY(ParseExl3Group(name, parts));
    TRY(CheckStoredSize(group, in, out));
    source.weights = std::move(group);
  } else if (affine) {
    source.weights = TRY(AffineMatrix(name, *weight, in, out));
  } else {
    source.weights = TRY(PlainMatrix(name, *weight, in, out));
  }
  return source;
}

Result<LinearSource> TensorSorter::Linear(const std::string& name, int64_t in, int64_t out) {
  auto source = TRY(MaybeLinear(name, in, out));
  if (source) return std::move(*source);
  missing_.push_back(name + ".trellis or .weight");
  return LinearSource{};
}

Result<PlainLinear> TensorSorter::PlainMatrix(const std::string& name, const TensorView& weight,
                                              int64_t in, int64_t out) {
  Take(weight);
  PlainLinear linear{.name = name, .k = in, .n = out};
  const std::array<int64_t, 2> shape = {out, in};
  TRY(CheckPlain(weight, shape));
  linear.weight = weight;
  if (const TensorView* bias = FindTensor(tensors_, name + ".bias"); bias != nullptr) {
    Take(*bias);
    TRY(CheckPlain(*bias, std::span(shape).first(1)));
    linear.bias = *bias;
  }
  return linear;
}

Result<AffineLinear> TensorSorter::AffineMatrix(const std::string& name, const TensorView& weight,
                                                int64_t in, int64_t out) {
  Take(weight);
  AffineLinear linear{.name = name, .k = in, .n = out};
  if (in % kAffineGroup != 0) {
    return Fail(Code::kUnsupported,
                std::to_string(in) + " inputs are no multiple of " + std::to_string(kAffineGroup) +
                    ", the group of a 4-bit matrix",
                weight.where());
  }
  const std::array<int64_t, 2> words = {out, in / kAffineWordValues};
  if (weight.dtype != DType::kU32 || !std::ranges::equal(weight.shape, words)) {
    return Fail(
        Code::kMismatch,
        "found " + Describe(weight) + ", expected U32 " + ShapeText(words) + " of a 4-bit matrix",
        weight.where());
  }
  linear.weight = weight;
  const std::array<int64_t, 2> groups = {out, in / kAffineGroup};
  for (const auto& [suffix, slot] :
       {std::pair{".scales", &linear.scales}, std::pair{".biases", &linear.biases}}) {
    const TensorView* part = FindTensor(tensors_, name + suffix);
    if (part == nullptr) {
      missing_.push_back(name + suffix);
      continue;
    }
    Take(*part);
    TRY(CheckPlain(*part, groups));
    *slot = *part;
  }
  return linear;
}

Result<SortedTensors> TensorSorter::Finish(std::span<const std::string_view> unused,
                                           std::string_view hint_prefix, const std::string& hint) {
  SortedTensors sorted;
  std::vector<const TensorView*> unknown;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (taken_[i]) {
      ++sorted.used_tensors;
      sorted.used_bytes += tensors_[i].bytes.size();
    } else if (!CountUnused(tensors_[i], unused, &sorted.unused)) {
      unknown.push_back(&tensors_[i]);
    }
  }
  if (all_ != nullptr) {
    all_->missing = missing_;
    all_->unknown = unknown;
    return sorted;
  }
  if (!missing_.empty()) {
    std::string message =
        std::to_string(missing_.size()) + " tensors are missing: " + Listed(missing_);
    if (!unknown.empty()) {
      message += "; " + std::to_string(unknown.size()) + " are not known: " + Listed(unknown);
    }
    const std::string name = missing_.front().substr(0, missing_.front().find(' '));
    return Fail(Code::kNotFound, std::move(message), {.file = folder_, .tensor = name});
  }
  if (unknown.empty()) return sorted;
  std::string message =
      std::to_string(unknown.size()) + " tensors are not known: " + Listed(unknown);
  if (unknown.front()->name.starts_with(hint_prefix)) message += "; " + hint;
  return Fail(Code::kUnsupported, std::move(message), unknown.front()->where());
}

}  // namespace hallmark
