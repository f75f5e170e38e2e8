// SPDX-License-Identifier: Apache-2.0
// fp16 (IEEE binary16), bf16 and fp8 e4m3fn as bit patterns, converted by integer arithmetic so
// that every machine gives the same bits. All narrowings round to nearest, ties to even.
#ifndef HALLMARK_ENGINE_BASE_FLOAT_TYPES_H_
#define HALLMARK_ENGINE_BASE_FLOAT_TYPES_H_

#include <bit>
#include <cstdint>

#include "engine/base/host_device.h"

namespace hallmark {

// Exact.
float HalfToFloat(uint16_t half);
// Overflow gives an infinity, NaN a quiet NaN.
uint16_t FloatToHalf(float value);
// One rounding from a double: not the same as rounding to fp32 first.
uint16_t DoubleToHalf(double value);

// Exact.
HALLMARK_HOST_DEVICE inline float Bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
// NaN stays a (quiet) NaN.
HALLMARK_HOST_DEVICE inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
HALLMARK_HOST_DEVICE inline float RoundToBf16(float value) {
  return Bf16ToFloat(FloatToBf16(value));
}

// fp8 e4m3fn (OCP): no infinity, 0x7F and 0xFF are NaN, largest finite 448. Exact.
float Fp8E4m3ToFloat(uint8_t bits);
// Saturates: every value beyond 448, infinities included, gives +-448. NaN gives NaN.
uint8_t FloatToFp8E4m3(float value);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_FLOAT_TYPES_H_
