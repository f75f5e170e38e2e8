// SPDX-License-Identifier: Apache-2.0
// AVX-512 (F, BW, DQ, VL, VBMI, VBMI2, VNNI). Compiled for those; see linear_loops.h for what may
// be included here.
#include <immintrin.h>

#include "engine/backend/cpu/exl3_pack.h"
#include "engine/backend/cpu/simd/linear_loops.h"

namespace hallmark {
namespace {

#include "engine/backend/cpu/simd/linear_avx512.inl"

// Rounds to 11 significant bits, ties to even: fp16 for every |v| >= 2^-14 that fp16 holds, and no
// codebook value below that needs rounding. c = fp32(8193 v) keeps v's bits 13 places up, where
// fp32 rounds them; c - 8192 v is exact.
static inline Vec RoundToHalf(Vec v) {
  const Vec c = _mm512_mul_ps(v, _mm512_set1_ps(8193.0f));
  return _mm512_fnmadd_ps(v, _mm512_set1_ps(8192.0f), c);
}

// 16 states, zero-extended -> 16 values.
template <int kCodebook>
HALLMARK_INLINE Vec Values(__m512i state) {
  if constexpr (kCodebook == 2) {
    const __m512i x = _mm512_mullo_epi32(state, _mm512_set1_epi32(static_cast<int>(0x83DCD12Du)));
    // The byte sum S lands in the mantissa of 2^23, so the bits are the float 2^23 + S.
    const __m512i biased =
        _mm512_dpbusd_epi32(_mm512_set1_epi32(0x4B000000), x, _mm512_set1_epi32(0x01010101));
    // (1024 + S) a + b with a = 887 / 2^17, b = -1329 / 128: one exact fma, as the constant
    // b + 1024 a - 2^23 a = -7266746 / 128 has 23 bits.
    const Vec v = _mm512_fmadd_ps(_mm512_castsi512_ps(biased), _mm512_set1_ps(887.0f / 131072.0f),
                                  _mm512_set1_ps(-7266746.0f / 128.0f));
    return RoundToHalf(v);
  } else {
    constexpr uint32_t kMultiplier = kCodebook == 0 ? 89226354u : 0xCBAC1FEDu;
    __m512i x = _mm512_mullo_epi32(state, _mm512_set1_epi32(static_cast<int>(kMultiplier)));
    if constexpr (kCodebook == 0) x = _mm512_add_epi32(x, _mm512_set1_epi32(64248484));
    // Widening a half whose exponent is 12..15: sign to bit 31, the low 12 bits to 24..13, and the
    // top exponent bits are the same for all.
    const __m512i keep = _mm512_set1_epi32(static_cast<int>(0x81FFE000u));
    const __m512i fixed = _mm512_set1_epi32(0x3F6C0000);
    constexpr int kAndXor = 0x6A;  // (a & b) ^ c
    const __m512i high = _mm512_ternarylogic_epi32(_mm512_srai_epi32(x, 3), keep, fixed, kAndXor);
    const __m512i low = _mm512_ternarylogic_epi32(_mm512_srai_epi32(_mm512_slli_epi32(x, 16), 3),
                                                  keep, fixed, kAndXor);
    return RoundToHalf(_mm512_add_ps(_mm512_castsi512_ps(high), _mm512_castsi512_ps(low)));
  }
}

// The tile row with local positions q and q + 4: one 64-bit lane a segment, columns c and c + 8.
template <int kCodebook, int kK2, int kEnd, int q>
HALLMARK_INLINE void TileRow(__m512i window, float* panel) {
  constexpr int kRow = 2 * (q / 8) + (q & 1) + 8 * ((q >> 1) & 1);
  constexpr int64_t kFirst = kEnd - EndBit(kK2, q);
  constexpr int64_t kSecond = kEnd - EndBit(kK2, q + 4);
  static_assert(kFirst >= 0 && kFirst + 16 <= 64 && kSecond >= 0);
  constexpr int64_t kControl = kFirst | (kFirst + 8) << 8 | kSecond << 32 | (kSecond + 8) << 40;
  const __m512i state = _mm512_maskz_multishift_epi64_epi8(0x3333333333333333ull,
                                                           _mm512_set1_epi64(kControl), window);
  Store(panel + kRow * kPanelColumns, Values<kCodebook>(state));
}

// Local positions 8 kOctet ... + 7: four rows. Above 6 bits they need more than 64 bits, so the
// window is taken twice.
template <int kCodebook, int kK2, int kOctet>
HALLMARK_INLINE void Octet(const __m512i* row, float* panel) {
  constexpr int q = 8 * kOctet;
  constexpr int kEnd = EndBit(kK2, q + 7);
  constexpr int kFirstEnd = kK2 > 12 ? EndBit(kK2, q + 5) : kEnd;
  const __m512i first = Window<kFirstEnd>(row);
  TileRow<kCodebook, kK2, kFirstEnd, q>(first, panel);
  TileRow<kCodebook, kK2, kFirstEnd, q + 1>(first, panel);
  const __m512i second = Window<kEnd>(row);
  TileRow<kCodebook, kK2, kEnd, q + 2>(second, panel);
  TileRow<kCodebook, kK2, kEnd, q + 3>(second, panel);
}

template <int kCodebook, int kK2>
static void DecodePanel(const uint8_t* packed, float* panel) {
  for (int t = 0; t < 8; ++t) {
    for (int side = 0; side < 2; ++side) {
      __m512i row[6];
      LoadRows<kK2>(packed, row);
      float* out = panel + 16 * t * kPanelColumns + 16 * side;
      Octet<kCodebook, kK2, 0>(row, out);
      Octet<kCodebook, kK2, 1>(row, out);
      Octet<kCodebook, kK2, 2>(row, out);
      Octet<kCodebook, kK2, 3>(row, out);
      packed += 16 * kK2;
    }
  }
}

// Lane 2 c + h holds column c + 8 h of a tile.
static inline void Natural(const float* sum, Vec* v) {
  const __m512i order = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  for (int i = 0; i < kBlock / kLanes; ++i) {
    v[i] = _mm512_permutexvar_ps(order, Load(sum + i * kLanes));
  }
}

static void UnpackPanel(const float* panel, float* values) {
  for (int i = 0; i < kPanelColumns; ++i) {  // 128 values at a time, as many as Natural takes
    Vec v[kBlock / kLanes];
    Natural(panel + i * kBlock, v);
    for (int j = 0; j < kBlock / kLanes; ++j) Store(values + i * kBlock + j * kLanes, v[j]);
  }
}

#include "engine/backend/cpu/simd/linear_table.inl"

}  // namespace

const LinearLoops& Avx512LinearLoops() {
  static constexpr LinearLoops kLoops = MakeLoops(&PackQuadColumns, &AddPanel<true>);
  return kLoops;
}

}  // namespace hallmark
