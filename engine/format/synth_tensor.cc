// SPDX-License-Identifier: Apache-2.0
#include "engine/format/synth_tensor.h"

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/float_types.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

constexpr uint64_t kStep = sizeof(uint64_t);
// SplitMix64's increment: word i of a tensor is output i of the generator.
constexpr uint64_t kIncrement = 0x9E3779B97F4A7C15ull;
constexpr uint32_t kPatterns = 1 << 16;
// Of kLeaning: one row in so many does not lean.
constexpr uint64_t kUprightEvery = 4;

// FNV-1a.
uint64_t HashName(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ull;
  return hash;
}

float ValueOf(const SynthTensor& tensor, uint32_t bits) {
  switch (tensor.fill) {
    case SynthFill::kBell:
    case SynthFill::kLeaning: {
      // Two uniform bytes: a triangle of this standard deviation.
      constexpr float kDeviation = 104.51f;
      const auto sum = static_cast<int>((bits >> 8) + (bits & 0xFF)) - 255;
      return tensor.middle + tensor.spread * (static_cast<float>(sum) / kDeviation);
    }
    case SynthFill::kUniform:
      return tensor.middle + tensor.spread * (static_cast<float>(bits) / 32767.5f - 1.0f);
    case SynthFill::kSigned: {
      const float size =
          tensor.spread * (0.75f + static_cast<float>(bits & 0x7FFF) / 32767.0f * 0.5f);
      return (bits & 0x8000) != 0 ? -size : size;
    }
    default:
      return tensor.middle;
  }
}

}  // namespace

uint64_t SynthTensor::bytes() const {
  uint64_t count = static_cast<uint64_t>(DTypeSize(dtype));
  for (const int64_t extent : shape) count *= static_cast<uint64_t>(extent);
  return count;
}

const std::vector<uint16_t>& SynthFiller::TableOf(const SynthTensor& tensor) {
  CHECK(tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16);
  if (!table_.empty() && made_for_.fill == tensor.fill && made_for_.dtype == tensor.dtype &&
      made_for_.middle == tensor.middle && made_for_.spread == tensor.spread) {
    return table_;
  }
  SynthTensor upright = tensor;
  upright.middle = 0;
  table_.resize(tensor.fill == SynthFill::kLeaning ? 2 * kPatterns : kPatterns);
  for (uint32_t i = 0; i < table_.size(); ++i) {
    const float value = ValueOf(i < kPatterns ? tensor : upright, i % kPatterns);
    table_[i] = tensor.dtype == DType::kF16 ? FloatToHalf(value) : FloatToBf16(value);
  }
  made_for_ = tensor;
  return table_;
}

void SynthFiller::Fill(const SynthTensor& tensor, uint64_t offset, std::span<std::byte> out) {
  CHECK(offset % kStep == 0 && offset + out.size() <= tensor.bytes());
  CHECK(out.size() % kStep == 0 || offset + out.size() == tensor.bytes());
  if (tensor.fill == SynthFill::kMarker) {
    CHECK(out.size() == sizeof(tensor.word));
    std::memcpy(out.data(), &tensor.word, out.size());
    return;
  }
  const uint64_t key = SplitMix64(seed_ ^ HashName(tensor.name)).Next();
  SplitMix64 random(key + offset / kStep * kIncrement);
  const uint16_t* const first = tensor.fill == SynthFill::kWords ? nullptr : TableOf(tensor).data();
  const uint16_t* table = first;
  const bool leaning = tensor.fill == SynthFill::kLeaning;
  uint64_t row_bytes = 0;
  if (leaning) {
    CHECK(tensor.shape.size() == 2 && tensor.word < kUprightEvery);
    row_bytes = static_cast<uint64_t>(tensor.shape[1]) * sizeof(uint16_t);
    CHECK(row_bytes > 0 && row_bytes % kStep == 0);
  }
  uint64_t row_end = 0;  // offset at which the next row begins
  std::byte* place = out.data();
  for (uint64_t at = offset; at < offset + out.size();) {
    if (leaning && at >= row_end) {
      const uint64_t row = at / row_bytes;
      table = row % kUprightEvery == tensor.word ? first + kPatterns : first;
      row_end = (row + 1) * row_bytes;
    }
    uint64_t word = random.Next();
    if (table != nullptr) {
      word = uint64_t{table[word & 0xFFFF]} | uint64_t{table[word >> 16 & 0xFFFF]} << 16 |
             uint64_t{table[word >> 32 & 0xFFFF]} << 32 | uint64_t{table[word >> 48]} << 48;
    }
    const size_t count = std::min<size_t>(offset + out.size() - at, kStep);
    if (count == kStep) {
      std::memcpy(place, &word, kStep);
    } else {
      std::memcpy(place, &word, count);
    }
    place += count;
    at += count;
  }
}

}  // namespace hallmark
