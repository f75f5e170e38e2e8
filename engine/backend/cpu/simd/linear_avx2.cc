// SPDX-License-Identifier: Apache-2.0
// AVX2 with FMA and F16C. Compiled for those; see linear_loops.h for what may be included here.
#include <immintrin.h>

#include "engine/backend/cpu/exl3_pack.h"
#include "engine/backend/cpu/simd/linear_loops.h"

namespace hallmark {
namespace {

using Vec = __m256;
constexpr int kLanes = 8;
constexpr int kAccumulators = 8;

static inline Vec Splat(float value) { return _mm256_set1_ps(value); }
static inline Vec ExactMulAdd(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }

// Upper lanes of a pair hold partner - own, lower lanes own + partner.
static inline Vec ButterfliesInside(Vec v) {
  Vec other = _mm256_permute_ps(v, 0xB1);
  v = _mm256_blend_ps(_mm256_add_ps(v, other), _mm256_sub_ps(other, v), 0xAA);
  other = _mm256_permute_ps(v, 0x4E);
  v = _mm256_blend_ps(_mm256_add_ps(v, other), _mm256_sub_ps(other, v), 0xCC);
  other = _mm256_permute2f128_ps(v, v, 0x01);
  return _mm256_blend_ps(_mm256_add_ps(v, other), _mm256_sub_ps(other, v), 0xF0);
}

static inline Vec RoundThroughHalf(Vec v, bool* bad) {
  const __m128i half = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m128i exponent = _mm_set1_epi16(0x7C00);
  *bad |= _mm_movemask_epi8(_mm_cmpeq_epi16(_mm_and_si128(half, exponent), exponent)) != 0;
  return _mm256_cvtph_ps(half);
}

#include "engine/backend/cpu/simd/linear_loops.inl"

// The same formula as exl3_codec.h's EndBit, from the start of a segment.
constexpr int EndBit(int k2, int q) { return ((q + 1) * k2 - ((k2 & 1) & ((q + 1) & 1))) / 2; }

// Rounds to 11 significant bits, ties to even: fp16 for every |v| >= 2^-14 that fp16 holds, and no
// codebook value below that needs rounding. c = fp32(8193 v) keeps v's bits 13 places up, where
// fp32 rounds them; c - 8192 v is exact.
static inline Vec RoundToHalf(Vec v) {
  const Vec c = _mm256_mul_ps(v, _mm256_set1_ps(8193.0f));
  return _mm256_fnmadd_ps(v, _mm256_set1_ps(8192.0f), c);
}

static inline __m256i Splat16(uint32_t value) {
  return _mm256_set1_epi16(static_cast<short>(value));
}

// fp32 bits of 16 halves of exponent 12..15 that still lack the mask and xor of their codebook,
// as high and low 16-bit parts: sign to bit 31, the low 12 bits to 24..13, the rest is fixed.
static inline __m256i WideHigh(__m256i half) {
  return _mm256_xor_si256(_mm256_and_si256(_mm256_srai_epi16(half, 3), Splat16(0x81FF)),
                          Splat16(0x3F6C));
}
static inline __m256i WideLow(__m256i half) { return _mm256_slli_epi16(half, 13); }

// 16 states -> 16 values: `first` from 16-bit lanes 0-3 and 8-11, `second` from 4-7 and 12-15.
template <int kCodebook>
HALLMARK_INLINE void Values(__m256i state, Vec* first, Vec* second) {
  constexpr uint32_t kMultiplier = kCodebook == 0   ? 89226354u
                                   : kCodebook == 1 ? 0xCBAC1FEDu
                                                    : 0x83DCD12Du;
  // x = state * multiplier (mod 2^32) in two 16-bit halves.
  __m256i low = _mm256_mullo_epi16(state, Splat16(kMultiplier & 0xFFFF));
  __m256i high = _mm256_add_epi16(_mm256_mulhi_epu16(state, Splat16(kMultiplier & 0xFFFF)),
                                  _mm256_mullo_epi16(state, Splat16(kMultiplier >> 16)));
  if constexpr (kCodebook == 2) {
    const __m256i ones = _mm256_set1_epi8(1);
    const __m256i sum =
        _mm256_add_epi16(_mm256_maddubs_epi16(low, ones), _mm256_maddubs_epi16(high, ones));
    // The byte sum S in the mantissa of 2^23 is the float 2^23 + S; (1024 + S) a + b with
    // a = 887 / 2^17, b = -1329 / 128 is then one exact fma, as the constant
    // b + 1024 a - 2^23 a = -7266746 / 128 has 23 bits.
    const __m256i bias = Splat16(0x4B00);
    const Vec a = _mm256_set1_ps(887.0f / 131072.0f);
    const Vec b = _mm256_set1_ps(-7266746.0f / 128.0f);
    const Vec f = _mm256_castsi256_ps(_mm256_unpacklo_epi16(sum, bias));
    const Vec s = _mm256_castsi256_ps(_mm256_unpackhi_epi16(sum, bias));
    *first = RoundToHalf(_mm256_fmadd_ps(f, a, b));
    *second = RoundToHalf(_mm256_fmadd_ps(s, a, b));
  } else {
    if constexpr (kCodebook == 0) {
      const __m256i addend = Splat16(64248484u & 0xFFFF);
      low = _mm256_add_epi16(low, addend);
      // -1 where the low half did not carry.
      const __m256i no_carry = _mm256_cmpeq_epi16(_mm256_max_epu16(low, addend), low);
      high = _mm256_add_epi16(_mm256_add_epi16(high, Splat16((64248484u >> 16) + 1)), no_carry);
    }
    const __m256i high_top = WideHigh(high);
    const __m256i high_rest = WideLow(high);
    const __m256i low_top = WideHigh(low);
    const __m256i low_rest = WideLow(low);
    *first =
        RoundToHalf(_mm256_add_ps(_mm256_castsi256_ps(_mm256_unpacklo_epi16(high_rest, high_top)),
                                  _mm256_castsi256_ps(_mm256_unpacklo_epi16(low_rest, low_top))));
    *second =
        RoundToHalf(_mm256_add_ps(_mm256_castsi256_ps(_mm256_unpackhi_epi16(high_rest, high_top)),
                                  _mm256_castsi256_ps(_mm256_unpackhi_epi16(low_rest, low_top))));
  }
}

// Word i of the 16 segments of a tile pair; word -1 lies before them.
static inline __m256i Word(const uint8_t* pair, __m256i before, int i) {
  return i < 0 ? before : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair + 32 * i));
}

// The states at local position q of 16 segments -> columns 8 h ... 8 h + 7 of both tiles.
template <int kCodebook, int kK2, int q>
HALLMARK_INLINE void HalfRow(const uint8_t* pair, __m256i before, float* panel) {
  constexpr int kRow = 2 * (q / 8) + (q & 1) + 8 * ((q >> 1) & 1);
  constexpr int kHalf = (q >> 2) & 1;
  constexpr int kEnd = EndBit(kK2, q);
  constexpr int kShift = kEnd % 16;
  __m256i state = Word(pair, before, kEnd / 16 - 1);
  if constexpr (kShift != 0) {
    state = _mm256_or_si256(_mm256_slli_epi16(state, kShift),
                            _mm256_srli_epi16(Word(pair, before, kEnd / 16), 16 - kShift));
  }
  Vec first, second;
  Values<kCodebook>(state, &first, &second);
  Store(panel + kRow * kPanelColumns + 16 * kHalf, first);
  Store(panel + kRow * kPanelColumns + 16 * kHalf + 8, second);
}

template <int kCodebook, int kK2, int kOctet>
HALLMARK_INLINE void Octet(const uint8_t* pair, __m256i before, float* panel) {
  HalfRow<kCodebook, kK2, 8 * kOctet>(pair, before, panel);
  HalfRow<kCodebook, kK2, 8 * kOctet + 1>(pair, before, panel);
  HalfRow<kCodebook, kK2, 8 * kOctet + 2>(pair, before, panel);
  HalfRow<kCodebook, kK2, 8 * kOctet + 3>(pair, before, panel);
  HalfRow<kCodebook, kK2, 8 * kOctet + 4>(pair, before, panel);
  HalfRow<kCodebook, kK2, 8 * kOctet + 5>(pair, before, panel);
  HalfRow<kCodebook, kK2, 8 * kOctet + 6>(pair, before, panel);
  HalfRow<kCodebook, kK2, 8 * kOctet + 7>(pair, before, panel);
}

template <int kCodebook, int kK2>
static void DecodePanel(const uint8_t* packed, float* panel) {
  for (int t = 0; t < 8; ++t) {
    // The ring: each segment looks back into its left neighbour, the first into the last. A tile's
    // 8 segments fill a 128-bit half, which is what alignr rotates.
    const __m256i last = Word(packed, __m256i{}, kK2 - 1);
    const __m256i before = _mm256_alignr_epi8(last, last, 14);
    Octet<kCodebook, kK2, 0>(packed, before, panel);
    Octet<kCodebook, kK2, 1>(packed, before, panel);
    Octet<kCodebook, kK2, 2>(packed, before, panel);
    Octet<kCodebook, kK2, 3>(packed, before, panel);
    packed += 32 * kK2;
    panel += 16 * kPanelColumns;
  }
}

// A panel row is, for h = 0, 1: [left 8h..8h+3 | right 8h..8h+3], [left 8h+4..8h+7 | right ...].
static inline void Natural(const float* sum, Vec* v) {
  for (int panel = 0; panel < 4; ++panel) {
    for (int h = 0; h < 2; ++h) {
      const Vec first = Load(sum + 32 * panel + 16 * h);
      const Vec second = Load(sum + 32 * panel + 16 * h + 8);
      v[4 * panel + h] = _mm256_permute2f128_ps(first, second, 0x20);
      v[4 * panel + 2 + h] = _mm256_permute2f128_ps(first, second, 0x31);
    }
  }
}

static void UnpackPanel(const float* panel, float* values) {
  for (int i = 0; i < kPanelColumns; ++i) {  // 128 values at a time, as many as Natural takes
    Vec v[kBlock / kLanes];
    Natural(panel + i * kBlock, v);
    for (int j = 0; j < kBlock / kLanes; ++j) Store(values + i * kBlock + j * kLanes, v[j]);
  }
}

static void DecodeBf16(const uint8_t* packed, float* panel) {
  for (int i = 0; i < kBlock * kPanelColumns; i += kLanes) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(packed + 2 * i));
    Store(panel + i, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16)));
  }
}

static void DecodeF16(const uint8_t* packed, float* panel) {
  for (int i = 0; i < kBlock * kPanelColumns; i += kLanes) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(packed + 2 * i));
    Store(panel + i, _mm256_cvtph_ps(bits));
  }
}

#include "engine/backend/cpu/simd/linear_table.inl"

}  // namespace

const LinearLoops& Avx2LinearLoops() {
  static constexpr LinearLoops kLoops = MakeLoops(&PackWordColumns, &AddPanel<true>);
  return kLoops;
}

}  // namespace hallmark
