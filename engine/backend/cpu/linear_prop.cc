// SPDX-License-Identifier: Apache-2.0
// Clause: row-invariance
// Random shapes: every tier has the bits of the scalar definition, and a row the bits it has alone.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "conformance/harness/random_exl3.h"
#include "engine/backend/cpu/cpu_linear.h"
#include "engine/backend/cpu/ref/hadamard.h"
#include "engine/backend/cpu/ref/plain_linear.h"
#include "engine/backend/cpu/widen.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

bool SameBits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

// All tiers on `x`, and its last row alone, against `expected`.
void CheckTiers(const LinearSource& source, const std::vector<float>& x, int64_t rows,
                const std::vector<float>& expected, int threads) {
  ThreadPool pool(threads);
  const int64_t in = source.in_features;
  const int64_t out = source.out_features;
  for (const CpuTier tier : SupportedCpuTiers()) {
    const auto linear = CpuLinear::Load(source, tier);
    RC_ASSERT(linear.has_value());
    std::vector<float> y(expected.size(), 1e30f);
    RC_ASSERT((*linear)->Run({x.data(), rows, in}, {y.data(), rows, out}, pool).has_value());
    RC_ASSERT(SameBits(y.data(), expected.data(), rows * out));
    std::vector<float> alone(static_cast<size_t>(out));
    RC_ASSERT((*linear)
                  ->Run({x.data() + (rows - 1) * in, 1, in}, {alone.data(), 1, out}, pool)
                  .has_value());
    RC_ASSERT(SameBits(alone.data(), expected.data() + (rows - 1) * out, out));
  }
}

RC_GTEST_PROP(LinearTiers, Exl3HasTheBitsOfTheDefinitionForAnyShape, ()) {
  const auto rates = AllExl3Rates();
  RandomExl3Options options;
  options.rate = rates[*rc::gen::inRange<size_t>(0, rates.size())];
  options.in_features = *rc::gen::inRange<int64_t>(1, 400);
  options.out_features = *rc::gen::inRange<int64_t>(1, 400);
  options.input_packed = *rc::gen::arbitrary<bool>();
  options.output_packed = *rc::gen::arbitrary<bool>();
  options.bias = *rc::gen::arbitrary<bool>();
  options.seed = *rc::gen::arbitrary<uint64_t>();
  const int64_t rows = *rc::gen::inRange<int64_t>(1, 70);
  const RandomExl3 layer(options);
  const std::vector<float> x = RandomRows(rows, options.in_features, options.seed + 1);
  std::vector<float> expected(static_cast<size_t>(rows * options.out_features));
  RC_ASSERT(RefExl3Linear(layer.operand(), x.data(), rows, options.in_features,
                          options.out_features, expected.data()));
  CheckTiers(layer.source(), x, rows, expected, *rc::gen::inRange(1, 4));
}

RC_GTEST_PROP(LinearTiers, PlainHasTheBitsOfTheDefinitionForAnyShapeAndType, ()) {
  const int64_t k = *rc::gen::inRange<int64_t>(1, 400);
  const int64_t n = *rc::gen::inRange<int64_t>(1, 300);
  const int64_t rows = *rc::gen::inRange<int64_t>(1, 20);
  const DType type = *rc::gen::element(DType::kBF16, DType::kF16, DType::kF32);
  const uint64_t seed = *rc::gen::arbitrary<uint64_t>();
  SplitMix64 random(seed);
  // Finite values of full precision at an odd address: exponents 0x3B.. keep F16, BF16 and the top
  // of F32 near one.
  const size_t size = static_cast<size_t>(DTypeSize(type));
  const auto values = [&](int64_t count) {
    std::vector<std::byte> bytes(1 + static_cast<size_t>(count) * size);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t bits = (static_cast<uint32_t>(random.Next()) & 0x83FFFFFFu) | 0x38000000u;
      std::memcpy(bytes.data() + 1 + static_cast<size_t>(i) * size,
                  reinterpret_cast<const std::byte*>(&bits) + (4 - size), size);
    }
    return bytes;
  };
  const std::vector<std::byte> weight = values(k * n);
  const std::vector<std::byte> bias = values(n);
  const auto view = [&](const std::vector<std::byte>& bytes, std::vector<int64_t> shape) {
    return TensorView{.name = "plain.weight",
                      .dtype = type,
                      .shape = std::move(shape),
                      .bytes = std::span<const std::byte>(bytes).subspan(1)};
  };
  PlainLinear plain{.name = "plain", .k = k, .n = n, .weight = view(weight, {n, k})};
  const bool has_bias = *rc::gen::arbitrary<bool>();
  if (has_bias) plain.bias = view(bias, {n});
  std::vector<float> w(static_cast<size_t>(k * n));
  std::vector<float> b(static_cast<size_t>(n));
  RC_ASSERT(WidenToFloat(plain.weight, 0, k * n, w.data()).has_value());
  RC_ASSERT(WidenToFloat(view(bias, {n}), 0, n, b.data()).has_value());
  const std::vector<float> x = RandomRows(rows, k, seed + 1);
  std::vector<float> expected(static_cast<size_t>(rows * n));
  RefPlainLinear(x.data(), rows, w.data(), has_bias ? b.data() : nullptr, n, k, expected.data());
  CheckTiers({k, n, plain}, x, rows, expected, *rc::gen::inRange(1, 4));
}

// Small integers stay exact through all seven butterflies, so twice the transform is the scale
// applied to 128 times the input, rounded where the definition rounds.
RC_GTEST_PROP(Hadamard, TwiceIsTheInputAgain, ()) {
  const auto input =
      *rc::gen::container<std::vector<int>>(size_t{128}, rc::gen::inRange(-1000, 1000));
  std::vector<float> v(input.begin(), input.end());
  RefHadamard128(v.data());
  for (float& value : v) value /= kHadamardScale;  // back to integers, up to rounding
  for (float& value : v) value = std::nearbyint(value);
  RefHadamard128(v.data());
  for (size_t i = 0; i < 128; ++i) {
    RC_ASSERT(v[i] == static_cast<float>(input[i] * 128) * kHadamardScale);
  }
}

}  // namespace
}  // namespace hallmark
