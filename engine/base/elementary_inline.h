// SPDX-License-Identifier: Apache-2.0
// The bodies of elementary.h, for device code to run the same operations in the same order. Host
// code calls elementary.h: an inline function that several objects share may be kept from an object
// that was compiled for wide instructions.
#ifndef HALLMARK_ENGINE_BASE_ELEMENTARY_INLINE_H_
#define HALLMARK_ENGINE_BASE_ELEMENTARY_INLINE_H_

#include <bit>
#include <cstdint>
#include <limits>

#include "engine/base/elementary.h"
#include "engine/base/host_device.h"

namespace hallmark::shared {

// Adding and subtracting 1.5 * 2^(mantissa bits) rounds to the nearest integer, ties to even.
constexpr float kRoundFloat = 0x1.8p23f;
constexpr double kRoundDouble = 0x1.8p52;

// 2^n for n in the normal exponent range.
HALLMARK_HOST_DEVICE inline float PowerOfTwo(int n) {
  return std::bit_cast<float>(static_cast<uint32_t>(n + 127) << 23);
}
HALLMARK_HOST_DEVICE inline double PowerOfTwoDouble(int n) {
  return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
}

// ln2 in two parts; the first has 15 significant bits, so that n * kLn2High is exact in fp32.
constexpr float kLn2High = 0x1.62e4p-1f;
constexpr float kLn2Low = 0x1.7f7d1cp-20f;
// The same for fp64, with 33 bits.
constexpr double kLn2HighDouble = 0x1.62e42feep-1;
constexpr double kLn2LowDouble = 0x1.a39ef35793c76p-33;

HALLMARK_HOST_DEVICE inline float Exp(float x) {
  if (x != x) return x;
  if (x > 88.8f) return std::numeric_limits<float>::infinity();
  if (x < -104.0f) return 0.0f;
  const float n = (x * 0x1.715476p+0f + kRoundFloat) - kRoundFloat;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  // 1 + (r + r^2 p): the large term is added last.
  const float e = 1.0f + (r + r * r * p);
  // Two factors keep both in range when the result is subnormal or near overflow.
  const int exponent = static_cast<int>(n);
  const int half = exponent / 2;
  return e * PowerOfTwo(half) * PowerOfTwo(exponent - half);
}

HALLMARK_HOST_DEVICE inline float Log1p(float x) {
  const float w = 1.0f + x;
  if (w == std::numeric_limits<float>::infinity() || w != w) return w;
  const float lost = x - (w - 1.0f);  // what rounding 1 + x dropped
  const uint32_t bits = std::bit_cast<uint32_t>(w);
  int exponent = static_cast<int>(bits >> 23) - 127;
  float m = std::bit_cast<float>((bits & 0x7FFFFFu) | 0x3F800000u);
  if (m > 0x1.6a09e6p+0f) {  // sqrt(2)
    m *= 0.5f;
    ++exponent;
  }
  const float f = m - 1.0f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  float p = 2.0f / 9.0f;
  p = p * z + 2.0f / 7.0f;
  p = p * z + 2.0f / 5.0f;
  p = p * z + 2.0f / 3.0f;
  const float n = static_cast<float>(exponent);
  // ln m = f - (f^2/2 - s (f^2/2 + z p)): f is exact, so that small results keep their precision.
  const float half_square = 0.5f * f * f;
  const float tail = s * (half_square + z * p) + (n * kLn2Low + lost / w);
  return n * kLn2High + (f - (half_square - tail));
}

HALLMARK_HOST_DEVICE inline float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }
HALLMARK_HOST_DEVICE inline float Silu(float x) { return x / (1.0f + Exp(-x)); }
HALLMARK_HOST_DEVICE inline float Softplus(float x) { return x > 20.0f ? x : Log1p(Exp(x)); }

HALLMARK_HOST_DEVICE inline double Exp(double x) {
  if (x != x) return x;
  if (x > 709.8) return std::numeric_limits<double>::infinity();
  if (x < -746.0) return 0.0;
  const double n = (x * 0x1.71547652b82fep+0 + kRoundDouble) - kRoundDouble;
  const double r = (x - n * kLn2HighDouble) - n * kLn2LowDouble;
  double p = 1.0 / 6227020800.0;  // 1/13!
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  const double e = 1.0 + (r + r * r * p);
  const int exponent = static_cast<int>(n);
  const int half = exponent / 2;
  return e * PowerOfTwoDouble(half) * PowerOfTwoDouble(exponent - half);
}

HALLMARK_HOST_DEVICE inline double Log(double x) {
  if (x != x || x < 0.0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0.0) return -std::numeric_limits<double>::infinity();
  if (x == std::numeric_limits<double>::infinity()) return x;
  int exponent = 0;
  if (x < 0x1p-1022) {  // subnormal
    x *= 0x1p54;
    exponent = -54;
  }
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    ++exponent;
  }
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 2.0 / 23.0;
  for (int k = 21; k >= 3; k -= 2) p = p * z + 2.0 / k;
  const double n = static_cast<double>(exponent);
  const double half_square = 0.5 * f * f;
  const double tail = s * (half_square + z * p) + n * kLn2LowDouble;
  return n * kLn2HighDouble + (f - (half_square - tail));
}

HALLMARK_HOST_DEVICE inline SinCosPair SinCos(float angle) {
  // pi/2 in two parts; the first has 33 bits, so that n * kHigh is exact for |n| < 2^20.
  constexpr double kHigh = 0x1.921fb544p+0;
  constexpr double kLow = 0x1.0b4611a626331p-34;
  const double x = static_cast<double>(angle);
  const double n = (x * 0x1.45f306dc9c883p-1 + kRoundDouble) - kRoundDouble;
  const double r = (x - n * kHigh) - n * kLow;
  const double z = r * r;
  double s = -1.0 / 1307674368000.0;  // -1/15!
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  const double sine = r + r * z * s;
  double c = 1.0 / 20922789888000.0;  // 1/16!
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  c = c * z - 0.5;
  const double cosine = 1.0 + z * c;
  const int quadrant = static_cast<int>(static_cast<int64_t>(n) & 3);
  const double sin_value = (quadrant & 1) ? cosine : sine;
  const double cos_value = (quadrant & 1) ? sine : cosine;
  return {static_cast<float>((quadrant & 2) ? -sin_value : sin_value),
          static_cast<float>((quadrant == 1 || quadrant == 2) ? -cos_value : cos_value)};
}

}  // namespace hallmark::shared

#endif  // HALLMARK_ENGINE_BASE_ELEMENTARY_INLINE_H_
