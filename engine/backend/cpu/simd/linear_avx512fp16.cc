// SPDX-License-Identifier: Apache-2.0
// AVX-512 with FP16 arithmetic. The codebooks are defined in fp16, so a decoder that has fp16
// lanes does 32 states an instruction and rounds as the definition does. Compiled for those; see
// linear_loops.h for what may be included here.
//
// An EXL3 panel is fp16 here: [8 tiles][8 row pairs][2 tile columns][32], lane 4 s + 2 h + i being
// column s + 8 h of row 2 m + i. A vector of 16 products so belongs to two of the 16 partial sums,
// by lane parity; the last step of the fold adds odd lanes to even ones.
#include <immintrin.h>

#include "engine/backend/cpu/exl3_pack.h"
#include "engine/backend/cpu/simd/linear_loops.h"

namespace hallmark {
namespace {

#include "engine/backend/cpu/simd/linear_avx512.inl"

constexpr int kPairBytes = 128;

static inline __m512i Splat16(uint32_t value) {
  return _mm512_set1_epi16(static_cast<short>(value));
}
static inline __m512h AsHalves(__m512i bits) { return _mm512_castsi512_ph(bits); }

// 32 states -> 32 fp16 values.
template <int kCodebook>
HALLMARK_INLINE __m512i Values(__m512i state) {
  constexpr uint32_t kMultiplier = kCodebook == 0   ? 89226354u
                                   : kCodebook == 1 ? 0xCBAC1FEDu
                                                    : 0x83DCD12Du;
  // x = state * multiplier (mod 2^32) in two 16-bit halves.
  __m512i low = _mm512_mullo_epi16(state, Splat16(kMultiplier & 0xFFFF));
  __m512i high = _mm512_add_epi16(_mm512_mulhi_epu16(state, Splat16(kMultiplier & 0xFFFF)),
                                  _mm512_mullo_epi16(state, Splat16(kMultiplier >> 16)));
  if constexpr (kCodebook == 2) {
    // Twice the byte sum S, taken as fp16 bits, is the subnormal S / 2^23. (1024 + S) a + b is then
    // one fma with 2^23 a = 56768 and b + 1024 a = -3.453125, both fp16 values.
    const __m512i twos = _mm512_set1_epi8(2);
    const __m512i sum =
        _mm512_add_epi16(_mm512_maddubs_epi16(low, twos), _mm512_maddubs_epi16(high, twos));
    return _mm512_castph_si512(
        _mm512_fmadd_ph(AsHalves(sum), AsHalves(Splat16(0x7AEE)), AsHalves(Splat16(0xC2E8))));
  } else {
    if constexpr (kCodebook == 0) {
      const __m512i addend = Splat16(64248484u & 0xFFFF);
      low = _mm512_add_epi16(low, addend);
      const __mmask32 carry = _mm512_cmplt_epu16_mask(low, addend);
      high = _mm512_add_epi16(high, Splat16(64248484u >> 16));
      high = _mm512_mask_sub_epi16(high, carry, high, Splat16(0xFFFF));
    }
    const __m512i keep = Splat16(0x8FFF);
    const __m512i flip = Splat16(0x3B60);
    constexpr int kAndXor = 0x6A;  // (a & b) ^ c
    return _mm512_castph_si512(
        _mm512_add_ph(AsHalves(_mm512_ternarylogic_epi32(low, keep, flip, kAndXor)),
                      AsHalves(_mm512_ternarylogic_epi32(high, keep, flip, kAndXor))));
  }
}

// Two tile rows: local positions q and q + 4 of the even one, q + 1 and q + 5 of the odd one.
template <int kCodebook, int kK2, int kEnd, int q>
HALLMARK_INLINE void RowPair(__m512i window, uint8_t* panel) {
  static_assert(q % 2 == 0);
  constexpr int kPair = q / 8 + 4 * ((q >> 1) & 1);
  constexpr uint64_t kA = kEnd - EndBit(kK2, q);
  constexpr uint64_t kB = kEnd - EndBit(kK2, q + 1);
  constexpr uint64_t kC = kEnd - EndBit(kK2, q + 4);
  constexpr uint64_t kD = kEnd - EndBit(kK2, q + 5);
  static_assert(kA + 16 <= 64 && kD < 64);
  constexpr uint64_t kControl = kA | (kA + 8) << 8 | kB << 16 | (kB + 8) << 24 | kC << 32 |
                                (kC + 8) << 40 | kD << 48 | (kD + 8) << 56;
  const __m512i state =
      _mm512_multishift_epi64_epi8(_mm512_set1_epi64(static_cast<long long>(kControl)), window);
  _mm512_storeu_si512(panel + kPair * kPairBytes, Values<kCodebook>(state));
}

// Local positions 8 kOctet ... + 7: four rows. Above 6 bits they need more than 64 bits, so the
// window is taken twice.
template <int kCodebook, int kK2, int kOctet>
HALLMARK_INLINE void Octet(const __m512i* row, uint8_t* panel) {
  constexpr int q = 8 * kOctet;
  constexpr int kEnd = EndBit(kK2, q + 7);
  constexpr int kFirstEnd = kK2 > 12 ? EndBit(kK2, q + 5) : kEnd;
  RowPair<kCodebook, kK2, kFirstEnd, q>(Window<kFirstEnd>(row), panel);
  RowPair<kCodebook, kK2, kEnd, q + 2>(Window<kEnd>(row), panel);
}

template <int kCodebook, int kK2>
static void DecodePanel(const uint8_t* packed, float* panel) {
  uint8_t* out = reinterpret_cast<uint8_t*>(panel);
  for (int t = 0; t < 8; ++t) {
    for (int side = 0; side < 2; ++side) {
      __m512i row[6];
      LoadRows<kK2>(packed, row);
      Octet<kCodebook, kK2, 0>(row, out + 64 * side);
      Octet<kCodebook, kK2, 1>(row, out + 64 * side);
      Octet<kCodebook, kK2, 2>(row, out + 64 * side);
      Octet<kCodebook, kK2, 3>(row, out + 64 * side);
      packed += 16 * kK2;
    }
    out += 8 * kPairBytes;
  }
}

static inline Vec LoadHalves(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// Two consecutive inputs in alternating lanes.
static inline Vec SplatPair(const float* x) {
  double pair;
  __builtin_memcpy(&pair, x, sizeof(pair));
  return _mm512_castpd_ps(_mm512_set1_pd(pair));
}

// kRows rows by one tile column; kTogether of the 8 pairs of partial sums run at once.
template <int kRows>
static inline void AddTile(const uint8_t* panel, const float* x, float* sum) {
  constexpr int kTogether = kAccumulators / (2 * kRows);
  Vec partial[8][kRows][2];
  for (int m = 0; m < 8; m += kTogether) {
    Vec chain[kTogether][kRows][2] = {};
    for (int t = 0; t < 8; ++t) {
      HALLMARK_UNROLL
      for (int i = 0; i < kTogether; ++i) {
        const uint8_t* w = panel + (8 * t + m + i) * kPairBytes;
        const Vec w0 = LoadHalves(w);
        const Vec w1 = LoadHalves(w + 32);
        HALLMARK_UNROLL
        for (int row = 0; row < kRows; ++row) {
          const Vec pair = SplatPair(x + row * kBlock + 16 * t + 2 * (m + i));
          chain[i][row][0] = ExactMulAdd(pair, w0, chain[i][row][0]);
          chain[i][row][1] = ExactMulAdd(pair, w1, chain[i][row][1]);
        }
      }
    }
    HALLMARK_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      HALLMARK_UNROLL
      for (int row = 0; row < kRows; ++row) {
        partial[m + i][row][0] = chain[i][row][0];
        partial[m + i][row][1] = chain[i][row][1];
      }
    }
  }
  const __m512i even = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 2, 6, 10, 14, 18, 22, 26, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  for (int row = 0; row < kRows; ++row) {
    // Partial sums 8, 4 and 2 apart are vectors 4, 2 and 1 apart.
    Vec folded[2][4];
    HALLMARK_UNROLL
    for (int side = 0; side < 2; ++side) {
      HALLMARK_UNROLL
      for (int m = 0; m < 4; ++m)
        folded[side][m] = partial[m][row][side] + partial[m + 4][row][side];
      HALLMARK_UNROLL
      for (int step = 2; step > 0; step /= 2) {
        HALLMARK_UNROLL
        for (int m = 0; m < step; ++m) folded[side][m] = folded[side][m] + folded[side][m + step];
      }
    }
    const Vec first = folded[0][0];
    const Vec second = folded[1][0];
    const Vec block =
        _mm512_permutex2var_ps(first, even, second) + _mm512_permutex2var_ps(first, odd, second);
    float* out = sum + row * kBlock;
    Store(out, Load(out) + block);
  }
}

static void AddExact(const float* panel, const float* x, int64_t rows, float* sum) {
  const uint8_t* halves = reinterpret_cast<const uint8_t*>(panel);
  while (rows > 0) {
    const int64_t step = rows >= 8 ? 8 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
    for (int side = 0; side < 2; ++side) {
      const uint8_t* tile = halves + 64 * side;
      float* out = sum + 16 * side;
      if (step == 8) {
        AddTile<8>(tile, x, out);
      } else if (step == 4) {
        AddTile<4>(tile, x, out);
      } else if (step == 2) {
        AddTile<2>(tile, x, out);
      } else {
        AddTile<1>(tile, x, out);
      }
    }
    rows -= step;
    x += step * kBlock;
    sum += step * kBlock;
  }
}

// Sums come out in natural order.
static inline void Natural(const float* sum, Vec* v) {
  for (int i = 0; i < kBlock / kLanes; ++i) v[i] = Load(sum + i * kLanes);
}

static void UnpackPanel(const float* panel, float* values) {
  const uint8_t* halves = reinterpret_cast<const uint8_t*>(panel);
  const __m512i even = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 2, 6, 10, 14, 18, 22, 26, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  for (int pair = 0; pair < kBlock / 2; ++pair) {
    for (int side = 0; side < 2; ++side) {
      const uint8_t* w = halves + pair * kPairBytes + 64 * side;
      const Vec first = LoadHalves(w);
      const Vec second = LoadHalves(w + 32);
      float* out = values + 2 * pair * kPanelColumns + 16 * side;
      Store(out, _mm512_permutex2var_ps(first, even, second));
      Store(out + kPanelColumns, _mm512_permutex2var_ps(first, odd, second));
    }
  }
}

#include "engine/backend/cpu/simd/linear_table.inl"

}  // namespace

const LinearLoops& Avx512Fp16LinearLoops() {
  static constexpr LinearLoops kLoops = MakeLoops(&PackQuadColumns, &AddExact);
  return kLoops;
}

}  // namespace hallmark
