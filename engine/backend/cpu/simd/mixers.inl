// SPDX-License-Identifier: Apache-2.0
// Included once per tier by mixers_avx2.cc and mixers_avx512.cc, which are compiled for that tier.
// Only raw pointers, static functions and calls to functions defined elsewhere: an inline function
// of a shared header compiled here could be chosen by the linker for machines that lack the
// instructions.
//
// `Wide` is 16 fp32 lanes whatever the register width; the compiler splits it. Multiplications and
// additions stay separate (-ffp-contract=off).

typedef float Wide __attribute__((vector_size(64)));

static inline Wide Load(const float* p) {
  Wide v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
static inline void Store(float* p, Wide v) { __builtin_memcpy(p, &v, sizeof(v)); }

// Adds 16 partial sums pairwise, partials 8, 4, 2 and 1 apart, lane by lane.
static inline Wide Fold(Wide* partial) {
  for (int step = 8; step > 0; step /= 2) {
    for (int j = 0; j < step; ++j) partial[j] += partial[j + step];
  }
  return partial[0];
}

// The same over the lanes of one vector.
static inline float FoldLanes(Wide partial) {
  float lane[16];
  Store(lane, partial);
  for (int step = 8; step > 0; step /= 2) {
    for (int j = 0; j < step; ++j) lane[j] += lane[j + step];
  }
  return lane[0];
}

// Nearest, ties to even; probabilities are finite.
static inline float ToBf16(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  bits = (bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u;
  __builtin_memcpy(&value, &bits, sizeof(bits));
  return value;
}

static void DeltaNetStep(const float* q, const float* k, const float* v, DeltaNetGate gate,
                         int64_t key_dim, int64_t value_dim, float* state, float* o) {
  for (int64_t c = 0; c < value_dim; c += 16) {
    Wide m = {};
    for (int64_t block = 0; block < key_dim; block += 128) {
      Wide partial[16] = {};
      for (int64_t i = block; i < block + 128; i += 16) {
        for (int j = 0; j < 16; ++j) {
          float* row = state + (i + j) * value_dim + c;
          const Wide s = Load(row) * gate.decay;
          Store(row, s);
          partial[j] += s * k[i + j];
        }
      }
      m += Fold(partial);
    }
    const Wide delta = gate.beta * (Load(v + c) - m);
    Wide out = {};
    for (int64_t block = 0; block < key_dim; block += 128) {
      Wide partial[16] = {};
      for (int64_t i = block; i < block + 128; i += 16) {
        for (int j = 0; j < 16; ++j) {
          float* row = state + (i + j) * value_dim + c;
          const Wide s = Load(row) + delta * k[i + j];
          Store(row, s);
          partial[j] += s * q[i + j];
        }
      }
      out += Fold(partial);
    }
    Store(o + c, out);
  }
}

static void AttentionTile(const float* query, const float* keys, const float* values, int64_t count,
                          int64_t head_dim, float scale, SoftmaxState& chunk) {
  float weight[kAttentionTile] = {};  // scores, then probabilities; zero past `count`
  float highest = chunk.max;
  for (int64_t t = 0; t < count; ++t) {
    const float* key = keys + t * head_dim;
    float dot = 0.0f;
    for (int64_t block = 0; block < head_dim; block += 128) {
      Wide partial = {};
      for (int64_t i = block; i < block + 128; i += 16) partial += Load(query + i) * Load(key + i);
      dot += FoldLanes(partial);
    }
    weight[t] = dot * scale;
    if (weight[t] > highest) highest = weight[t];
  }
  const float keep = Exp(chunk.max - highest);
  for (int64_t t = 0; t < count; ++t) weight[t] = Exp(weight[t] - highest);
  // 64 terms or fewer: one block of the sum, absent terms adding nothing.
  Wide partial = {};
  for (int64_t t = 0; t < kAttentionTile; t += 16) partial += Load(weight + t);
  chunk.max = highest;
  chunk.sum = chunk.sum * keep + FoldLanes(partial);
  for (int64_t t = 0; t < count; ++t) weight[t] = ToBf16(weight[t]);
  for (int64_t d = 0; d < head_dim; d += 64) {
    Wide sum[4];
    for (int i = 0; i < 4; ++i) sum[i] = Load(chunk.values + d + 16 * i) * keep;
    for (int64_t t = 0; t < count; ++t) {
      const float* row = values + t * head_dim + d;
      for (int i = 0; i < 4; ++i) sum[i] += Load(row + 16 * i) * weight[t];
    }
    for (int i = 0; i < 4; ++i) Store(chunk.values + d + 16 * i, sum[i]);
  }
}
