// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/random_exl3.h"

#include <cstring>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/checked.h"
#include "engine/base/float_types.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

// fp16 values of either sign with magnitude in [0.5, 1), and what they widen to.
std::vector<uint16_t> RandomHalves(int64_t count, SplitMix64& random, std::vector<float>& widened) {
  std::vector<uint16_t> halves;
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = random.NextU16();
    halves.push_back(static_cast<uint16_t>((bits & 0x83FFu) | 0x3800u));
    widened.push_back(HalfToFloat(halves.back()));
  }
  return halves;
}

std::vector<uint16_t> RandomSigns(int64_t count, SplitMix64& random, std::vector<float>& widened) {
  std::vector<uint16_t> words;
  for (int64_t i = 0; i < count; ++i) {
    if (i % 16 == 0) words.push_back(random.NextU16());
    widened.push_back((words.back() >> (i % 16)) & 1 ? -1.0f : 1.0f);
  }
  return words;
}

}  // namespace

RandomExl3::RandomExl3(const RandomExl3Options& options) : options_(options) {
  SplitMix64 random(options.seed);
  Exl3Group group;
  group.name = "random";
  group.codebook = options.rate.codebook;
  group.k2 = options.rate.k2;
  group.k = RoundUp(options.in_features, kExl3Block);
  group.n = RoundUp(options.out_features, kExl3Block);
  words_.resize(
      static_cast<size_t>(group.k / kTileSide * (group.n / kTileSide) * TileWords(group.k2)));
  for (uint16_t& word : words_) word = random.NextU16();
  group.trellis = View("random.trellis", DType::kI16,
                       {group.k / kTileSide, group.n / kTileSide, TileWords(group.k2)}, words_);
  const auto scale = [&](const char* name, bool packed, int64_t count, std::vector<float>& wide) {
    if (packed) return View(name, DType::kI16, {count / 16}, RandomSigns(count, random, wide));
    return View(name, DType::kF16, {count}, RandomHalves(count, random, wide));
  };
  group.input_packed = options.input_packed;
  group.input_scale =
      scale(options.input_packed ? "random.su" : "random.suh", options.input_packed, group.k, suh_);
  group.output_packed = options.output_packed;
  group.output_scale = scale(options.output_packed ? "random.sv" : "random.svh",
                             options.output_packed, group.n, svh_);
  if (options.bias) group.bias = scale("random.bias", false, group.n, bias_);
  source_ = {options.in_features, options.out_features, std::move(group)};
}

TensorView RandomExl3::View(const char* name, DType dtype, std::vector<int64_t> shape,
                            std::span<const uint16_t> words) {
  // Heap blocks are aligned, so one byte of offset makes every value straddle.
  std::vector<std::byte>& bytes = storage_.emplace_back(words.size_bytes() + 1);
  std::memcpy(bytes.data() + 1, words.data(), words.size_bytes());
  return {.name = name,
          .dtype = dtype,
          .shape = std::move(shape),
          .bytes = std::span<const std::byte>(bytes).subspan(1)};
}

Exl3Operand RandomExl3::operand() const {
  return {.rate = options_.rate,
          .k = group().k,
          .n = group().n,
          .trellis = words_.data(),
          .suh = suh_.data(),
          .svh = svh_.data(),
          .bias = bias_.empty() ? nullptr : bias_.data()};
}

void RandomExl3::SetTiles(std::span<const uint16_t> words) {
  CHECK(words.size() == words_.size());
  words_.assign(words.begin(), words.end());
  Exl3Group& group = std::get<Exl3Group>(source_.weights);
  group.trellis = View("random.trellis", DType::kI16, group.trellis.shape, words_);
}

std::vector<float> RandomRows(int64_t rows, int64_t columns, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (float& value : values) value = random.NextNormal();
  return values;
}

}  // namespace hallmark
