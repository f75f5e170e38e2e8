// SPDX-License-Identifier: Apache-2.0
// Included once per wide tier, inside its namespace, after the tier has defined
//   Vec              a vector of kLanes fp32
//   kAccumulators    how many Vec the tier can keep in registers
//   Splat(value)     the value in every lane
//   ExactMulAdd(a, b, c)   a * b + c where a * b is exact
//   ButterfliesInside(v)   strides 1 ... kLanes / 2 of the Hadamard transform in one Vec
//   RoundThroughHalf(v, &bad)  fp16 rounding, widened; raises `bad` unless all are finite in fp16
// Raw pointers and static functions only (see linear_loops.h). Multiplications and additions stay
// separate where written so (-ffp-contract=off).

// A decoder is one straight run of instructions; a call in it costs as much as its work.
#define HALLMARK_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define HALLMARK_UNROLL _Pragma("unroll")
#else
#define HALLMARK_UNROLL _Pragma("GCC unroll 16")
#endif

constexpr int kPanelColumns = 32;
constexpr int kBlock = 128;

static inline Vec Load(const float* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
static inline void Store(float* p, Vec v) { __builtin_memcpy(p, &v, sizeof(v)); }

template <bool kExact>
static inline Vec MulAdd(Vec a, Vec b, Vec c) {
  if constexpr (kExact) return ExactMulAdd(a, b, c);
  return a * b + c;
}

// kRows rows by two Vec of columns. kTogether of the 16 partial sums run at once, which is what
// keeps the adders busy when there are few rows; each partial sum is still its own chain in order.
template <int kRows, bool kExact>
static inline void AddBlock(const float* panel, const float* x, float* sum) {
  constexpr int kTogether = kAccumulators / (2 * kRows);
  Vec partial[16][kRows][2];
  for (int j = 0; j < 16; j += kTogether) {
    Vec chain[kTogether][kRows][2] = {};
    for (int t = 0; t < kBlock; t += 16) {
      HALLMARK_UNROLL
      for (int i = 0; i < kTogether; ++i) {
        const float* w = panel + (t + j + i) * kPanelColumns;
        const Vec w0 = Load(w);
        const Vec w1 = Load(w + kLanes);
        HALLMARK_UNROLL
        for (int row = 0; row < kRows; ++row) {
          const Vec value = Splat(x[row * kBlock + t + j + i]);
          chain[i][row][0] = MulAdd<kExact>(value, w0, chain[i][row][0]);
          chain[i][row][1] = MulAdd<kExact>(value, w1, chain[i][row][1]);
        }
      }
    }
    HALLMARK_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      HALLMARK_UNROLL
      for (int row = 0; row < kRows; ++row) {
        partial[j + i][row][0] = chain[i][row][0];
        partial[j + i][row][1] = chain[i][row][1];
      }
    }
  }
  for (int row = 0; row < kRows; ++row) {
    HALLMARK_UNROLL
    for (int side = 0; side < 2; ++side) {
      Vec folded[8];
      HALLMARK_UNROLL
      for (int j = 0; j < 8; ++j) folded[j] = partial[j][row][side] + partial[j + 8][row][side];
      HALLMARK_UNROLL
      for (int step = 4; step > 0; step /= 2) {
        HALLMARK_UNROLL
        for (int j = 0; j < step; ++j) folded[j] = folded[j] + folded[j + step];
      }
      float* out = sum + row * kBlock + side * kLanes;
      Store(out, Load(out) + folded[0]);
    }
  }
}

template <bool kExact>
static void AddPanel(const float* panel, const float* x, int64_t rows, float* sum) {
  while (rows > 0) {
    const int64_t step = rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
    for (int c = 0; c < kPanelColumns; c += 2 * kLanes) {
      if (step == 4) {
        AddBlock<4, kExact>(panel + c, x, sum + c);
      } else if (step == 2) {
        AddBlock<2, kExact>(panel + c, x, sum + c);
      } else {
        AddBlock<1, kExact>(panel + c, x, sum + c);
      }
    }
    rows -= step;
    x += step * kBlock;
    sum += step * kBlock;
  }
}

static inline void Hadamard128(Vec* v) {
  constexpr int kVecs = kBlock / kLanes;
  for (int i = 0; i < kVecs; ++i) v[i] = ButterfliesInside(v[i]);
  HALLMARK_UNROLL
  for (int stride = 1; stride < kVecs; stride *= 2) {
    HALLMARK_UNROLL
    for (int i = 0; i < kVecs; ++i) {
      if ((i & stride) != 0) continue;
      const Vec a = v[i];
      const Vec b = v[i + stride];
      v[i] = a + b;
      v[i + stride] = a - b;
    }
  }
  for (int i = 0; i < kVecs; ++i) v[i] *= Splat(0.088388347648f);
}

static bool RotateInput(const float* x, const float* suh, float* xh) {
  Vec v[kBlock / kLanes];
  for (int i = 0; i < kBlock / kLanes; ++i) v[i] = Load(x + i * kLanes) * Load(suh + i * kLanes);
  Hadamard128(v);
  bool bad = false;
  for (int i = 0; i < kBlock / kLanes; ++i) Store(xh + i * kLanes, RoundThroughHalf(v[i], &bad));
  return !bad;
}

// `v` in natural order.
static inline void RotateNatural(Vec* v, const float* svh, const float* bias, float* y) {
  Hadamard128(v);
  for (int i = 0; i < kBlock / kLanes; ++i) {
    Vec scaled = v[i] * Load(svh + i * kLanes);
    if (bias != nullptr) scaled = scaled + Load(bias + i * kLanes);
    Store(y + i * kLanes, scaled);
  }
}
