// SPDX-License-Identifier: Apache-2.0
// Included once per wide tier, compiled for that tier; rules as in mixers.inl. `Wide` is 16 fp32
// lanes, one an output; multiplications and additions stay separate (-ffp-contract=off).

typedef float Wide __attribute__((vector_size(64)));
typedef int32_t WideInt __attribute__((vector_size(64)));

static inline Wide Load(const float* p) {
  Wide v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

static void AddAffine(const AffineBlock& block, const float* x, int64_t x_stride,
                      const float* x_sum, int64_t sum_stride, int64_t rows, float* acc) {
  Wide w[64];
  for (int m = 0; m < 8; ++m) {
    WideInt word;
    __builtin_memcpy(&word, block.words[m], sizeof(word));
    for (int j = 0; j < 8; ++j) {
      w[8 * m + j] = __builtin_convertvector((word >> (4 * j)) & 15, Wide);
    }
  }
  const Wide scale = Load(block.scales);
  const Wide bias = Load(block.biases);
  for (int64_t row = 0; row < rows; ++row) {
    Wide partial[16];
    for (int j = 0; j < 16; ++j) {
      Wide sum = {};
      for (int t = 0; t < 64; t += 16) sum += x[t + j] * w[t + j];
      partial[j] = sum;
    }
    for (int step = 8; step > 0; step /= 2) {
      for (int j = 0; j < step; ++j) partial[j] += partial[j + step];
    }
    const Wide total = Load(acc) + (scale * partial[0] + bias * *x_sum);
    __builtin_memcpy(acc, &total, sizeof(total));
    x += x_stride;
    x_sum += sum_stride;
    acc += 16;
  }
}
