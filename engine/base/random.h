// SPDX-License-Identifier: Apache-2.0
// SplitMix64: the one generator of test inputs and synthetic weights. Portable and seeded, so that
// every machine sees the same inputs; std distributions differ between libraries and are not used.
#ifndef HALLMARK_ENGINE_BASE_RANDOM_H_
#define HALLMARK_ENGINE_BASE_RANDOM_H_

#include <cstdint>

namespace hallmark {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  // The top 16 bits of the next output.
  uint16_t NextU16() { return static_cast<uint16_t>(Next() >> 48); }

  // Uniform in [0, bound); bound > 0. The modulo bias is below 2^-32 for bounds under 2^32.
  uint64_t Below(uint64_t bound) { return Next() % bound; }

  // Uniform in [-1, 1), a multiple of 2^-23, so that it is exact in fp32.
  float NextSigned() {
    return static_cast<float>(static_cast<int32_t>(Next() >> 40) - (1 << 23)) * 0x1p-23f;
  }

  // Roughly normal with unit variance: twelve uniforms summed in a fixed order.
  float NextNormal() {
    float sum = 0.0f;
    for (int i = 0; i < 12; ++i) sum += NextSigned();
    return sum * 0.5f;
  }

 private:
  uint64_t state_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_RANDOM_H_
