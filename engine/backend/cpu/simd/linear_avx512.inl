// SPDX-License-Identifier: Apache-2.0
// What the two AVX-512 tiers share: vectors of 16, the bit windows of a packed tile, plain panels.
// Included once by each, inside its namespace.

using Vec = __m512;
constexpr int kLanes = 16;
constexpr int kAccumulators = 16;

static inline Vec Splat(float value) { return _mm512_set1_ps(value); }
static inline Vec ExactMulAdd(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }

// Upper lanes of a pair hold partner - own, lower lanes own + partner.
static inline Vec ButterfliesInside(Vec v) {
  Vec other = _mm512_permute_ps(v, 0xB1);
  v = _mm512_mask_sub_ps(_mm512_add_ps(v, other), 0xAAAA, other, v);
  other = _mm512_permute_ps(v, 0x4E);
  v = _mm512_mask_sub_ps(_mm512_add_ps(v, other), 0xCCCC, other, v);
  other = _mm512_shuffle_f32x4(v, v, 0xB1);
  v = _mm512_mask_sub_ps(_mm512_add_ps(v, other), 0xF0F0, other, v);
  other = _mm512_shuffle_f32x4(v, v, 0x4E);
  return _mm512_mask_sub_ps(_mm512_add_ps(v, other), 0xFF00, other, v);
}

static inline Vec RoundThroughHalf(Vec v, bool* bad) {
  const __m256i half = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256i exponent = _mm256_set1_epi16(0x7C00);
  *bad |= _mm256_cmpeq_epi16_mask(_mm256_and_si256(half, exponent), exponent) != 0;
  return _mm512_cvtph_ps(half);
}

#include "engine/backend/cpu/simd/linear_loops.inl"

// The same formula as exl3_codec.h's EndBit, from the start of a segment.
constexpr int EndBit(int k2, int q) { return ((q + 1) * k2 - ((k2 & 1) & ((q + 1) & 1))) / 2; }

// 64 stream bits of each of the 8 segments, ending at bit kEnd of the segment. row[0] ends where
// the segment starts, row[1 + i] is group i.
template <int kEnd>
HALLMARK_INLINE __m512i Window(const __m512i* row) {
  if constexpr (kEnd % 64 == 0) {
    return row[kEnd / 64];
  } else {
    return _mm512_shldi_epi64(row[kEnd / 64], row[kEnd / 64 + 1], kEnd % 64);
  }
}

template <int kK2>
HALLMARK_INLINE void LoadRows(const uint8_t* tile, __m512i* row) {
  constexpr int kFull = kK2 / 4;
  constexpr int kRest = kK2 % 4;
  for (int i = 0; i < kFull; ++i) row[1 + i] = _mm512_loadu_si512(tile + 64 * i);
  __m512i tail = row[kFull];
  if constexpr (kRest != 0) {
    // kRest words a segment, moved to the top of its 64 bits.
    alignas(64) static constexpr struct Spread {
      uint8_t index[64] = {};
      constexpr Spread() {
        for (int segment = 0; segment < 8; ++segment) {
          for (int byte = 0; byte < 2 * kRest; ++byte) {
            index[8 * segment + 8 - 2 * kRest + byte] =
                static_cast<uint8_t>(2 * kRest * segment + byte);
          }
        }
      }
    } kSpread;
    constexpr uint64_t kTop = 0x0101010101010101ull * ((0xFFu << (8 - 2 * kRest)) & 0xFFu);
    row[kFull + 1] = _mm512_maskz_permutexvar_epi8(kTop, _mm512_load_si512(kSpread.index),
                                                   _mm512_loadu_si512(tile + 64 * kFull));
    tail = _mm512_srli_epi64(row[kFull + 1], 64 - 16 * kRest);
  }
  // The ring: each segment looks back into its left neighbour, the first into the last.
  row[0] = _mm512_alignr_epi64(tail, tail, 7);
}

static void DecodeBf16(const uint8_t* packed, float* panel) {
  for (int i = 0; i < kBlock * kPanelColumns; i += kLanes) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(packed + 2 * i));
    Store(panel + i, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16)));
  }
}

static void DecodeF16(const uint8_t* packed, float* panel) {
  for (int i = 0; i < kBlock * kPanelColumns; i += kLanes) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(packed + 2 * i));
    Store(panel + i, _mm512_cvtph_ps(bits));
  }
}
