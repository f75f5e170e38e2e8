// SPDX-License-Identifier: Apache-2.0
#include "engine/base/float_types.h"

namespace hallmark {
namespace {

// Rounds the significand `m` (any width) right by `shift` bits, to nearest, ties to even.
constexpr uint64_t ShiftRoundEven(uint64_t m, int shift) {
  if (shift <= 0) return m << -shift;
  if (shift > 63) return 0;
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t rest = m & ((half << 1) - 1);
  const uint64_t kept = m >> shift;
  return kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
}

struct SmallFormat {
  int mantissa_bits;
  int bias;
};

// Encodes +-significand * 2^(exponent - 52) (significand has its top bit at 52, or is 0) into the
// bits of a small format without regard to its largest value: a carry runs into the exponent, as it
// should. The caller handles overflow.
constexpr uint32_t EncodeMagnitude(uint64_t significand, int exponent, SmallFormat format) {
  if (significand == 0) return 0;
  int biased = exponent + format.bias;
  int shift = 52 - format.mantissa_bits;
  if (biased < 1) {  // subnormal: no implicit bit
    shift += 1 - biased;
    return static_cast<uint32_t>(ShiftRoundEven(significand, shift));
  }
  const uint64_t rounded = ShiftRoundEven(significand, shift);  // implicit bit still inside
  return static_cast<uint32_t>((static_cast<uint64_t>(biased - 1) << format.mantissa_bits) +
                               rounded);
}

struct Parts {
  bool negative;
  uint64_t significand;  // top bit at 52 for normal numbers; 0 for zeros and fp64 subnormals
  int exponent;
};

Parts Split(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const int biased = static_cast<int>((bits >> 52) & 0x7FF);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  // An fp64 subnormal is far below half the smallest value of any format here.
  if (biased == 0) return {bits >> 63 != 0, 0, 0};
  return {bits >> 63 != 0, fraction | (uint64_t{1} << 52), biased - 1023};
}

}  // namespace

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t fraction = half & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // exact
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

uint16_t DoubleToHalf(double value) {
  const Parts parts = Split(value);
  const uint16_t sign = parts.negative ? 0x8000u : 0u;
  if (value != value) return static_cast<uint16_t>(sign | 0x7E00u);
  if (parts.exponent > 15) return static_cast<uint16_t>(sign | 0x7C00u);
  const uint32_t magnitude = EncodeMagnitude(parts.significand, parts.exponent, {10, 15});
  return static_cast<uint16_t>(sign | (magnitude > 0x7C00u ? 0x7C00u : magnitude));
}

uint16_t FloatToHalf(float value) { return DoubleToHalf(static_cast<double>(value)); }

float Fp8E4m3ToFloat(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t exponent = (bits >> 3) & 0xFu;
  const uint32_t fraction = bits & 7u;
  if (exponent == 15 && fraction == 7) return std::bit_cast<float>(sign | 0x7FC00000u);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-9f;  // exact
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 120) << 23) | (fraction << 20));
}

uint8_t FloatToFp8E4m3(float value) {
  const Parts parts = Split(static_cast<double>(value));
  const uint8_t sign = parts.negative ? 0x80u : 0u;
  if (value != value) return static_cast<uint8_t>(sign | 0x7Fu);
  if (parts.exponent > 8) return static_cast<uint8_t>(sign | 0x7Eu);
  const uint32_t magnitude = EncodeMagnitude(parts.significand, parts.exponent, {3, 7});
  return static_cast<uint8_t>(sign | (magnitude > 0x7Eu ? 0x7Eu : magnitude));
}

}  // namespace hallmark
