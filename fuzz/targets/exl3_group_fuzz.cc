// SPDX-License-Identifier: Apache-2.0
// ParseExl3Group takes the tensors of any file, as those under the prefix "p"; what it accepts
// keeps the promises of its header, re-derived here, and its tiles can be decoded.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "engine/backend/exl3_codec.h"
#include "engine/format/exl3_group.h"
#include "engine/format/safetensors.h"

namespace {

using hallmark::DType;

void Need(bool holds) {
  if (!holds) std::abort();
}

bool Holds(const hallmark::TensorView& tensor, DType dtype, int64_t count) {
  return tensor.dtype == dtype && tensor.elements() == count &&
         tensor.bytes.size() == static_cast<size_t>(count * hallmark::DTypeSize(dtype));
}

void CheckGroup(const hallmark::Exl3Group& group) {
  Need(group.k > 0 && group.k % 128 == 0 && group.n > 0 && group.n % 128 == 0);
  Need(group.k2 >= 2 && group.k2 <= 16);
  Need(group.k2 % 2 == 0 || (group.k2 < 8 && group.codebook == hallmark::Codebook::kMul1));
  Need(Holds(group.trellis, DType::kI16, group.k / 16 * (group.n / 16) * 8 * group.k2));
  const auto side = [](const hallmark::TensorView& scale, bool packed, int64_t size) {
    return packed ? Holds(scale, DType::kI16, size / 16) : Holds(scale, DType::kF16, size);
  };
  Need(side(group.input_scale, group.input_packed, group.k));
  Need(side(group.output_scale, group.output_packed, group.n));
  if (group.bias) {
    Need(Holds(*group.bias, DType::kF16, group.n) || Holds(*group.bias, DType::kF32, group.n));
  }
}

// Any words are a ring of states, and these pack to the same words again.
void CheckTile(std::span<const std::byte> bytes, hallmark::Exl3Rate rate) {
  std::array<uint16_t, hallmark::kMaxTileWords> words;
  std::array<uint16_t, hallmark::kMaxTileWords> packed;
  std::memcpy(words.data(), bytes.data(), bytes.size());
  std::array<uint16_t, hallmark::kTileWeights> values;
  hallmark::DecodeTile(words.data(), rate, values.data());
  std::array<uint16_t, hallmark::kTileWeights> states;
  for (int p = 0; p < hallmark::kTileWeights; ++p) {
    states[static_cast<size_t>(p)] = hallmark::StateAt(words.data(), rate.k2, p);
  }
  Need(hallmark::IsRing(states, rate.k2));
  hallmark::PackStates(states, rate.k2, packed.data());
  Need(std::memcmp(packed.data(), words.data(), bytes.size()) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto table = hallmark::ParseSafetensors(std::as_bytes(std::span(data, size)), "fuzz");
  if (!table.has_value()) return 0;
  // Sorted by name, so those of one prefix are neighbours.
  const std::string_view prefix = "p.";
  size_t first = 0;
  while (first < table->tensors.size() && !table->tensors[first].name.starts_with(prefix)) ++first;
  size_t last = first;
  while (last < table->tensors.size() && table->tensors[last].name.starts_with(prefix)) ++last;
  const auto tensors = std::span(table->tensors).subspan(first, last - first);
  const auto group = hallmark::ParseExl3Group("p", tensors);
  if (!group.has_value()) {
    Need(!group.error().message.empty());
    return 0;
  }
  Need(hallmark::LooksLikeExl3("p", tensors));
  CheckGroup(*group);
  for (const hallmark::TensorView* scale : {&group->input_scale, &group->output_scale}) {
    (void)hallmark::CheckFinite(*scale);
  }
  const hallmark::Exl3Rate rate{group->codebook, group->k2};
  const size_t words = static_cast<size_t>(hallmark::TileWords(group->k2));
  const size_t tiles = group->trellis.bytes.size() / (2 * words);
  for (const size_t index : {size_t{0}, tiles - 1}) {
    CheckTile(group->trellis.bytes.subspan(index * 2 * words, 2 * words), rate);
  }
  return 0;
}
