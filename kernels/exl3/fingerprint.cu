// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/exl3/fingerprint.h"

namespace hallmark {
namespace {

constexpr int kLanes = 32;
constexpr int kLaneResults = 4;
constexpr int kInstructions = kFingerprintResults / (kLanes * kLaneResults);

// SplitMix64's output function, of a counter.
__device__ uint64_t Mix(uint64_t counter) {
  uint64_t z = (counter + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// The spread of exponents of an instruction's inputs: from one binade to sixteen.
__device__ int SpreadOf(int instruction) { return 1 << (instruction / 2 % 5); }

// A finite pattern of a type with `mantissa` bits and exponents around `bias`: the exponent lies
// within `spread` below the bias, every eighth pattern is subnormal or zero.
__device__ uint32_t Pattern(uint64_t random, int mantissa, int bias, int spread) {
  const uint32_t bits = static_cast<uint32_t>(random) & ((1u << mantissa) - 1);
  const uint32_t sign = static_cast<uint32_t>(random >> 32) & 1u;
  uint32_t exponent = 0;
  if (spread == 1 || (random >> 33) % 8 != 0) {
    const int drop = static_cast<int>((random >> 40) % static_cast<uint64_t>(spread));
    exponent = static_cast<uint32_t>(drop < bias ? bias - drop : 1);
  }
  return sign << 15 | exponent << mantissa | bits;
}

// Two neighbours of a fragment. In every other instruction the second cancels most of the first
// against an equal factor on the other side: same exponent and sign bit flipped, lowest bit apart.
__device__ uint32_t Pair(int instruction, int lane, int which, int mantissa, int bias) {
  const int spread = SpreadOf(instruction);
  const uint64_t counter =
      (static_cast<uint64_t>(instruction) * kLanes + static_cast<uint64_t>(lane)) * 16 +
      static_cast<uint64_t>(which) * 2;
  const uint32_t low = Pattern(Mix(counter), mantissa, bias, spread);
  uint32_t high = Pattern(Mix(counter + 1), mantissa, bias, spread);
  const bool cancels = instruction % 2 == 1;
  if (cancels) high = which < 4 ? (low ^ 0x8001u) : low;
  return high << 16 | low;
}

// The accumulator: zero, or a value near the products.
__device__ float Start(int instruction, int lane, int which) {
  if (instruction % 4 < 2) return 0.0f;
  const uint64_t random =
      Mix((uint64_t{1} << 32) + (static_cast<uint64_t>(instruction) * kLanes + lane) * 4 + which);
  const uint32_t exponent = 127u - static_cast<uint32_t>(random >> 40) % 24u;
  return __uint_as_float((static_cast<uint32_t>(random >> 32) & 1u) << 31 | exponent << 23 |
                         (static_cast<uint32_t>(random) & 0x7FFFFFu));
}

template <bool kHalf>
__device__ void Multiply(const uint32_t (&a)[4], const uint32_t (&b)[2], float (&c)[4]) {
  if constexpr (kHalf) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

// One warp an instruction; the even half of the blocks takes fp16, the odd one bf16.
__global__ void FingerprintKernel(uint32_t* results) {
  const int block = static_cast<int>(blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x);
  const bool half = block % 2 == 0;
  const int instruction = block / 2;
  const int mantissa = half ? 10 : 7;
  const int bias = half ? 15 : 127;
  uint32_t a[4];
  uint32_t b[2];
  float c[kLaneResults];
  for (int i = 0; i < 4; ++i) a[i] = Pair(instruction, lane, i, mantissa, bias);
  for (int i = 0; i < 2; ++i) b[i] = Pair(instruction, lane, 4 + i, mantissa, bias);
  for (int i = 0; i < kLaneResults; ++i) c[i] = Start(instruction, lane, i);
  if (half) {
    Multiply<true>(a, b, c);
  } else {
    Multiply<false>(a, b, c);
  }
  for (int i = 0; i < kLaneResults; ++i) {
    results[(block * kLanes + lane) * kLaneResults + i] = __float_as_uint(c[i]);
  }
}

}  // namespace

cudaError_t LaunchFingerprint(uint32_t* results, cudaStream_t stream) {
  static_assert(kInstructions % 2 == 0, "as many of one type as of the other");
  FingerprintKernel<<<kInstructions, kLanes, 0, stream>>>(results);
  return cudaGetLastError();
}

}  // namespace hallmark
