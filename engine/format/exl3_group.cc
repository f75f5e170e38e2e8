// SPDX-License-Identifier: Apache-2.0
#include "engine/format/exl3_group.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "engine/base/mapped_file.h"
#include "engine/format/quantization_config.h"

namespace hallmark {
namespace {

constexpr int64_t kTile = 16;
constexpr int64_t kHadamardBlock = 128;

// In the order of Suffixes below.
constexpr std::array<std::string_view, 9> kSuffixes = {"trellis", "suh",  "svh",  "su",    "sv",
                                                       "mcg",     "mul1", "bias", "weight"};

struct Parts {
  const TensorView* trellis = nullptr;
  const TensorView* suh = nullptr;
  const TensorView* svh = nullptr;
  const TensorView* su = nullptr;
  const TensorView* sv = nullptr;
  const TensorView* mcg = nullptr;
  const TensorView* mul1 = nullptr;
  const TensorView* bias = nullptr;
  const TensorView* weight = nullptr;

  const TensorView** Slot(std::string_view suffix) {
    const std::array<const TensorView**, 9> slots = {&trellis, &suh,  &svh,  &su,    &sv,
                                                     &mcg,     &mul1, &bias, &weight};
    for (size_t i = 0; i < kSuffixes.size(); ++i) {
      if (kSuffixes[i] == suffix) return slots[i];
    }
    return nullptr;
  }
};

tl::unexpected<Error> Absent(const Exl3Group& group, const std::string& file, const char* suffix,
                             const char* what) {
  return Fail(Code::kNotFound, std::string("the EXL3 group has no ") + what,
              {.file = file, .tensor = group.name + "." + suffix});
}

std::string Describe(const TensorView& tensor) {
  return std::string(DTypeName(tensor.dtype)) + " " + ShapeText(tensor.shape);
}

Status Need(const TensorView& tensor, DType dtype, std::span<const int64_t> shape) {
  if (tensor.dtype == dtype && std::ranges::equal(tensor.shape, shape)) return {};
  return Fail(Code::kMismatch,
              "found " + Describe(tensor) + ", expected " + std::string(DTypeName(dtype)) + " " +
                  ShapeText(shape),
              tensor.where());
}

// 1 to 8 bits in whole steps, and 1.5, 2.5, 3.5.
bool IsWidth(int64_t k2) { return k2 >= 2 && k2 <= 16 && (k2 % 2 == 0 || k2 < 8); }

Status ReadTrellis(const TensorView& trellis, Exl3Group* group) {
  const Locator where = trellis.where();
  if (trellis.dtype != DType::kI16 || trellis.shape.size() != 3) {
    return Fail(Code::kMismatch,
                "found " + Describe(trellis) + ", expected I16 [k/16, n/16, words]", where);
  }
  const int64_t words = trellis.shape[2];
  if (words % 8 != 0 || !IsWidth(words / 8)) {
    return Fail(Code::kUnsupported,
                std::to_string(words) +
                    " words a tile are no known width; widths are 1 to 8, 1.5, 2.5 and 3.5 bits, "
                    "16 words a bit",
                where);
  }
  // Checked before multiplying: a zero extent would let the other one be as large as it likes.
  for (const int64_t tiles : {trellis.shape[0], trellis.shape[1]}) {
    if (tiles == 0 || tiles % (kHadamardBlock / kTile) != 0) {
      return Fail(Code::kMismatch,
                  "the stored size is " + ShapeText(std::span(trellis.shape).first(2)) +
                      " tiles of 16, both must be multiples of 8 (128 channels)",
                  where);
    }
  }
  group->k2 = static_cast<int>(words / 8);
  group->k = trellis.shape[0] * kTile;
  group->n = trellis.shape[1] * kTile;
  group->trellis = trellis;
  return {};
}

Status CheckMarker(const TensorView& marker, uint32_t multiplier) {
  if (marker.dtype != DType::kI32 || marker.elements() != 1) {
    return Fail(Code::kMismatch, "found " + Describe(marker) + ", expected one I32",
                marker.where());
  }
  uint32_t value = 0;
  std::memcpy(&value, marker.bytes.data(), sizeof(value));
  TRY(CheckIntact(marker.bytes, marker.file));
  if (value == multiplier) return {};
  return Fail(Code::kUnsupported,
              "the codebook's multiplier is " + std::to_string(value) + "; " +
                  std::to_string(multiplier) + " is supported",
              marker.where());
}

Status ReadCodebook(const Parts& parts, Exl3Group* group) {
  if (parts.mcg != nullptr && parts.mul1 != nullptr) {
    return Fail(Code::kMismatch, "both codebook markers are present, mcg and mul1",
                parts.mul1->where());
  }
  if (parts.mcg != nullptr) {
    TRY(CheckMarker(*parts.mcg, kMcgMultiplier));
    group->codebook = Codebook::kMcg;
  } else if (parts.mul1 != nullptr) {
    TRY(CheckMarker(*parts.mul1, kMul1Multiplier));
    group->codebook = Codebook::kMul1;
  }
  if (group->k2 % 2 != 0 && group->codebook != Codebook::kMul1) {
    return Fail(Code::kUnsupported,
                "a half width with codebook " + std::string(CodebookName(group->codebook)) +
                    "; half widths exist with mul1 only",
                group->trellis.where());
  }
  return {};
}

// One side's scales, fp16 or packed signs.
Status ReadScale(const Exl3Group& group, const TensorView* scale, const TensorView* signs,
                 const char* suffix, const char* what, int64_t size, TensorView* out,
                 bool* packed) {
  if (scale == nullptr && signs == nullptr) {
    return Absent(group, group.trellis.file, suffix, what);
  }
  if (scale != nullptr && signs != nullptr) {
    return Fail(Code::kMismatch, "both forms of the scales are present, fp16 and packed signs",
                signs->where());
  }
  *packed = signs != nullptr;
  *out = *packed ? *signs : *scale;
  const std::array<int64_t, 1> shape = {*packed ? size / kTile : size};
  return Need(*out, *packed ? DType::kI16 : DType::kF16, shape);
}

Status ReadBias(const TensorView* bias, Exl3Group* group) {
  if (bias == nullptr) return {};
  const std::array<int64_t, 1> shape = {group->n};
  TRY(Need(*bias, bias->dtype == DType::kF32 ? DType::kF32 : DType::kF16, shape));
  group->bias = *bias;
  return {};
}

// True when the exponent bits are all ones. `T` is the value's bits.
template <typename T>
bool IsNotFinite(T bits, T exponent) {
  return (bits & exponent) == exponent;
}

template <typename T>
Status CheckFiniteBits(const TensorView& tensor, T exponent) {
  const size_t count = tensor.bytes.size() / sizeof(T);
  size_t bad = 0;
  size_t first = 0;
  for (size_t i = 0; i < count; ++i) {
    T bits;
    std::memcpy(&bits, tensor.bytes.data() + i * sizeof(T), sizeof(T));
    if (!IsNotFinite(bits, exponent)) continue;
    if (bad++ == 0) first = i;
  }
  TRY(CheckIntact(tensor.bytes, tensor.file));
  if (bad == 0) return {};
  Locator where = tensor.where();
  where.byte = tensor.file_offset + first * sizeof(T);
  return Fail(Code::kOutOfRange,
              std::to_string(bad) + " of " + std::to_string(count) +
                  " values are infinite or not a number, the first at index " +
                  std::to_string(first),
              std::move(where));
}

}  // namespace

bool LooksLikeExl3(std::string_view prefix, std::span<const TensorView> tensors) {
  for (const TensorView& tensor : tensors) {
    const std::string_view suffix = std::string_view(tensor.name).substr(prefix.size() + 1);
    for (const std::string_view own : kSuffixes) {
      if (suffix == own && own != "bias" && own != "weight") return true;
    }
  }
  return false;
}

Result<Exl3Group> ParseExl3Group(std::string_view prefix, std::span<const TensorView> tensors) {
  Parts parts;
  for (const TensorView& tensor : tensors) {
    const std::string_view suffix = std::string_view(tensor.name).substr(prefix.size() + 1);
    const TensorView** slot = parts.Slot(suffix);
    if (slot == nullptr) {
      return Fail(Code::kUnsupported,
                  "\"" + std::string(suffix) + "\" is not a part of an EXL3 group", tensor.where());
    }
    *slot = &tensor;
  }
  if (parts.weight != nullptr) {
    return Fail(Code::kMismatch, "a plain weight lies beside the parts of an EXL3 group",
                parts.weight->where());
  }
  Exl3Group group;
  group.name = prefix;
  if (parts.trellis == nullptr) {
    return Absent(group, tensors.empty() ? "" : tensors.front().file, "trellis", "trellis");
  }
  TRY(ReadTrellis(*parts.trellis, &group));
  TRY(ReadCodebook(parts, &group));
  TRY(ReadScale(group, parts.suh, parts.su, "suh", "input scales", group.k, &group.input_scale,
                &group.input_packed));
  TRY(ReadScale(group, parts.svh, parts.sv, "svh", "output scales", group.n, &group.output_scale,
                &group.output_packed));
  TRY(ReadBias(parts.bias, &group));
  return group;
}

Status CheckFinite(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kF16:
      return CheckFiniteBits<uint16_t>(tensor, 0x7C00);
    case DType::kBF16:
      return CheckFiniteBits<uint16_t>(tensor, 0x7F80);
    case DType::kF32:
      return CheckFiniteBits<uint32_t>(tensor, 0x7F800000);
    default:
      return {};
  }
}

Status CheckExl3IsStated(std::span<const LinearSource* const> linears,
                         const std::optional<QuantizationConfig>& quantization) {
  const Exl3Group* first = nullptr;
  for (const LinearSource* linear : linears) {
    const auto* group = std::get_if<Exl3Group>(&linear->weights);
    if (group != nullptr && first == nullptr) first = group;
  }
  if (first != nullptr && !quantization) {
    return Fail(Code::kMismatch,
                "there are EXL3 tensors, but no config has a quantization_config: a conversion was "
                "interrupted",
                first->trellis.where());
  }
  if (first == nullptr && quantization) {
    return Fail(Code::kMismatch, "the quantization is exl3, but no linear is an EXL3 group",
                {.file = quantization->file, .pointer = quantization->pointer + "/quant_method"});
  }
  return {};
}

}  // namespace hallmark
